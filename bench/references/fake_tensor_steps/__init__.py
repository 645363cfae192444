"""The parts of fake_tensor.py, which stands beside this folder and says what is measured."""
