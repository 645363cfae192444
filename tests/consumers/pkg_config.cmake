# Builds SOURCE with what pkg-config says of the installed package, and runs it.
set(ENV{PKG_CONFIG_PATH} ${PREFIX}/${LIBDIR}/pkgconfig)
file(MAKE_DIRECTORY ${BUILD})
execute_process(COMMAND ${PKG_CONFIG} --define-variable=prefix=${PREFIX} --cflags --libs ${PACKAGE} OUTPUT_VARIABLE flags
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags)
execute_process(COMMAND ${COMPILER} -std=${STANDARD} ${SOURCE} ${flags} -o ${BUILD}/consumer COMMAND_ERROR_IS_FATAL ANY)
set(ENV{LD_LIBRARY_PATH} ${PREFIX}/${LIBDIR})
execute_process(COMMAND ${BUILD}/consumer ${SUMMARY} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
if(NOT output MATCHES "25557032 parameters")
  message(FATAL_ERROR "the consumer printed\n${output}")
endif()
