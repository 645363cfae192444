# Sourced, from the root of the tree: what is configured from here on is compiled through ccache. Its folder is the argument.
#
# Precompiled headers are compared by their contents, files by contents and not by time: a fresh clone has all times new.
export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_DIR=$1 CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 \
  CCACHE_SLOPPINESS=locale,pch_defines,time_macros,include_file_mtime,include_file_ctime
