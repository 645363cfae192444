# Input: a header. Output: the same, its opening comment ("// Input: ... Output: ...") as the documentation of the file.
1!b
/^\/\//!b
i\
/// \\file
# All of its first paragraph is what lists show.
s|^// \{0,1\}|// \n|
:next
s|^// \{0,1\}||
# Signs that Doxygen would take for its own.
s/[\\@#<>]/\\&/g
s/\(^\n\{0,1\}\|[.] \)\(Input\|Output\|Units\|Source\|Sources\|Errors\): /\1**\2**: /g
s|^\n|\\brief |
s|^|/// |
n
/^\/\//b next
