// Nothing of its own: the headers that are precompiled for the tests belong to the library that holds this file.
