# Matrix instructions of GPUs that hiprtc of HIP 5 does not know.
foreach(case IN ITEMS "gfx1100 v_wmma_f32_16x16x16_f16 v_wmma_f32_16x16x16_bf16"
                      "gfx940 v_mfma_f32_16x16x16_f16 v_mfma_f32_16x16x16_bf16")
  separate_arguments(case)
  list(GET case 0 architecture)
  add_test(NAME hip_kernels.atoms_of_${architecture} COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/amd_atoms.sh ${case})
  set_tests_properties(hip_kernels.atoms_of_${architecture} PROPERTIES LABELS hip_kernels TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()
