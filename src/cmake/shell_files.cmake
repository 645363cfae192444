# The scripts of completion and the manual pages, as the program itself prints them: made with every build that can be
# installed, so that what is installed is what was built. Where the program is built for another machine it cannot run here,
# and there are none; a project that has gpumem as a part of its own build needs none.
function(gpumem_add_shell_files program folder)
  if(NOT GPUMEM_INSTALL)
    return()
  endif()
  set(stamp ${folder}/made)
  add_custom_command(
    OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${program} completion bash --out ${folder}/gpumem
    COMMAND ${program} completion zsh --out ${folder}/_gpumem
    COMMAND ${program} completion fish --out ${folder}/gpumem.fish
    COMMAND ${program} man --out ${folder}/man1
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${program}
    COMMENT "Writing shell completion and manual pages"
    VERBATIM)
  add_custom_target(gpumem_shell_files ALL DEPENDS ${stamp})
  install(FILES ${folder}/gpumem DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${folder}/_gpumem DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${folder}/gpumem.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  install(DIRECTORY ${folder}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} FILES_MATCHING PATTERN "*.1")
endfunction()
