# Fails unless the file README holds the text of each file in PIECES, to the letter.
file(READ ${README} readme)
foreach(piece ${PIECES})
  file(READ ${piece} text)
  string(FIND "${readme}" "${text}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${README} does not hold the text of ${piece}")
  endif()
endforeach()
