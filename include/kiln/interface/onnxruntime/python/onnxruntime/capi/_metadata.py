"""What a model says of itself."""

from __future__ import annotations

import ctypes

from ._api import allocator, api, int_from, owned_text, pointer_from, text


class ModelMetadata:
    """Producer, graph, domain, descriptions, version and the map of a model's own entries."""

    def __init__(self, session: int) -> None:
        handle = pointer_from(api.model_metadata, session)
        try:
            self.producer_name = owned_text(api.metadata_producer, handle, allocator)
            self.graph_name = owned_text(api.metadata_graph_name, handle, allocator)
            self.domain = owned_text(api.metadata_domain, handle, allocator)
            self.description = owned_text(api.metadata_description, handle, allocator)
            self.graph_description = owned_text(api.metadata_graph_description, handle, allocator)
            self.version = int_from(api.metadata_version, handle)
            self.custom_metadata_map = _entries(handle)
        finally:
            api.release_metadata(handle)


def _entries(handle: int) -> dict[str, str]:
    keys, count = ctypes.c_void_p(), ctypes.c_int64()
    api.metadata_keys(handle, allocator, ctypes.byref(keys), ctypes.byref(count))
    out = {}
    addresses = ctypes.cast(keys, ctypes.POINTER(ctypes.c_void_p))
    for i in range(count.value):
        key = text(addresses[i])
        out[key] = owned_text(api.metadata_entry, handle, allocator, key.encode())
        api.free(allocator, addresses[i])
    if keys.value:
        api.free(allocator, keys)
    return out
