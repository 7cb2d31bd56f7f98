/* ONNX Runtime GenAI's C++ interface, written here from its documented names over its C interface (C++17; with C++20
 * also spans). Create functions and the like return std::unique_ptr; errors are thrown as std::runtime_error.
 *
 *   auto model = OgaModel::Create("folder");
 *   auto tokenizer = OgaTokenizer::Create(*model);
 *   auto prompt = OgaSequences::Create();
 *   tokenizer->Encode("In the beginning", *prompt);
 *   auto params = OgaGeneratorParams::Create(*model);
 *   params->SetSearchOption("max_length", 64);
 *   auto generator = OgaGenerator::Create(*model, *params);
 *   generator->AppendTokenSequences(*prompt);
 *   while (!generator->IsDone()) generator->GenerateNextToken();
 *   std::cout << tokenizer->Decode(generator->GetSequenceData(0), generator->GetSequenceCount(0));
 */
#pragma once
#include <ort_genai_generate.h>
#include <ort_genai_media.h>
#include <ort_genai_model.h>
#include <ort_genai_values.h>
