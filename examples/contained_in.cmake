# Fails unless the file PAGE holds the text of each file in PIECES, to the letter.
file(READ ${PAGE} page)
foreach(piece ${PIECES})
  file(READ ${piece} text)
  string(FIND "${page}" "${text}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${PAGE} does not hold the text of ${piece}")
  endif()
endforeach()
