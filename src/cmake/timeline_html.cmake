# Writes timeline_html.hpp, which holds the page's template as text: the program carries it. In pieces, for compilers
# need not take a literal of more than 64 KiB.
function(gpumem_write_timeline_html template out)
  file(READ ${template} html)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${template})
  string(LENGTH "${html}" length)
  set(pieces "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${html}" ${at} 8000 piece)
    string(APPEND pieces "\n    R\"gpumem(${piece})gpumem\"")
    math(EXPR at "${at} + 8000")
  endwhile()
  file(
    GENERATE
    OUTPUT ${out}/timeline_html.hpp
    CONTENT
      "// Written by src/cmake/timeline_html.cmake from src/cli/timeline.html.\n#pragma once\n\n#include <string_view>\n\nnamespace gpumem::cli {\n\ninline constexpr std::string_view kTimelineHtml =${pieces};\n\n}  // namespace gpumem::cli\n"
  )
endfunction()
