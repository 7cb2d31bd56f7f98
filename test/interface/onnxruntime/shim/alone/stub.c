/* What a program is linked with in the place of a libonnxruntime.so.1 of some version; never called. */
void* OrtGetApiBase(void) { return 0; }
void* OrtSessionOptionsAppendExecutionProvider_MIGraphX(void* options, int device) { return options && device ? options : 0; }
