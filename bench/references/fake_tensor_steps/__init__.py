"""The parts of fake_tensor.py, which is next to this folder and says what is measured."""
