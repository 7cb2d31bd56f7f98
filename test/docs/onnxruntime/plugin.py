import onnxruntime as ort
import onnxruntime_ep_kiln

name = onnxruntime_ep_kiln.get_ep_name()  # "KilnExecutionProvider"
if name not in [device.ep_name for device in ort.get_ep_devices()]:
    ort.register_execution_provider_library(name, onnxruntime_ep_kiln.get_library_path())

options = ort.SessionOptions()
devices = [device for device in ort.get_ep_devices() if device.ep_name == name]
options.add_provider_for_devices(devices, {'threads': '2'})
session = ort.InferenceSession('<path to model>', sess_options=options)
