# Writes timeline_html.hpp, which holds the page's template as text: the program carries it. The page is page.html with
# style.css and the scripts put in, which share one function. In pieces, for compilers need not take a literal of more
# than 64 KiB.
function(gpumem_write_timeline_html folder out)
  set(scripts ${folder}/data.js ${folder}/chart.js ${folder}/controls.js ${folder}/tables.js)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/page.html ${folder}/style.css ${scripts})
  file(READ ${folder}/page.html html)
  file(READ ${folder}/style.css style)
  set(script "")
  foreach(file ${scripts})
    file(READ ${file} part)
    string(APPEND script "${part}\n")
  endforeach()
  string(REPLACE "@STYLE@" "${style}" html "${html}")
  string(REPLACE "@SCRIPT@" "${script}" html "${html}")
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
      "// Written by src/cmake/timeline_html.cmake from src/cli/timeline.\n#pragma once\n\n#include <string_view>\n\nnamespace gpumem::cli {\n\ninline constexpr std::string_view kTimelineHtml =${pieces};\n\n}  // namespace gpumem::cli\n"
  )
endfunction()
