"""The parts of export_graph.py, which is next to this folder and is what people run and import.

one_model  a model's graph and shapes, by means of all others
models     what is exported by name           tracing, sizes   a model's operations and dimensions
modules    modules that are one op            exporter, graph  the nodes of graph JSON
calls      the table of functions' handlers, which elementwise, parts, products, shapes and layer_functions fill
"""
