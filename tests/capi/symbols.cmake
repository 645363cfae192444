# Fails unless the shared library LIBRARY exports exactly the symbols, with their versions, that the file EXPECTED lists.
# The list is the ABI: a line is added with a function, and none is ever changed or taken away.
execute_process(COMMAND ${NM} -D --defined-only --with-symbol-versions ${LIBRARY} OUTPUT_VARIABLE printed
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "\n$" "" printed "${printed}")
string(REPLACE "\n" ";" rows "${printed}")
set(symbols "")
foreach(row ${rows})
  string(REGEX REPLACE "^[0-9a-f]+ " "" row "${row}")
  list(APPEND symbols "${row}")
endforeach()
list(SORT symbols)
list(JOIN symbols "\n" found)
file(READ ${EXPECTED} expected)
if(NOT "${found}\n" STREQUAL "${expected}")
  message(FATAL_ERROR "${LIBRARY} exports\n${found}\nand should export\n${expected}")
endif()
