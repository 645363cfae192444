// gpumem: the program.
#include "command_line.hpp"

int main(int argc, char** argv) { return gpumem::cli::run_command_line(argc, argv); }
