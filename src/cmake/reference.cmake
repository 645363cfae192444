# The target "reference": the API's pages by Doxygen, in the build folder under reference. Where there is no Doxygen there is
# no target, and nothing else needs it.
find_package(Doxygen 1.9.4 QUIET)
if(DOXYGEN_FOUND)
  set(reference_folder ${CMAKE_CURRENT_BINARY_DIR}/reference)
  configure_file(docs/reference/Doxyfile.in ${CMAKE_CURRENT_BINARY_DIR}/Doxyfile @ONLY)
  file(MAKE_DIRECTORY ${reference_folder})
  add_custom_target(reference COMMAND ${DOXYGEN_EXECUTABLE} ${CMAKE_CURRENT_BINARY_DIR}/Doxyfile
                    COMMENT "Writing the reference of the API to ${reference_folder}/index.html" VERBATIM)
endif()
