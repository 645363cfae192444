# Runs PROGRAM with ARGUMENT, or with ARGUMENTS, separated by |; fails unless it prints exactly what the file EXPECTED
# holds.
string(REPLACE "|" ";" ARGUMENTS "${ARGUMENTS}")
execute_process(COMMAND ${PROGRAM} ${ARGUMENT} ${ARGUMENTS} OUTPUT_VARIABLE printed RESULT_VARIABLE status)
file(READ ${EXPECTED} expected)
if(NOT status EQUAL 0 OR NOT printed STREQUAL expected)
  message(FATAL_ERROR "exit code ${status}\nprinted:\n${printed}\nexpected:\n${expected}")
endif()
