"""The package onnxruntime_genai: GenAI's names, and scripts that import it, as they are."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import onnxruntime_genai as og
from help import CHATML, FOLDER, GOLDEN, GenaiCase, folder_like_scripture

EXAMPLES = pathlib.Path("examples/genai/python").resolve()
# Names and members that programs of GenAI 0.12 use.
NAMES = {
    "Config": "append_provider set_provider_option clear_providers add_model_data remove_model_data overlay "
    "set_decoder_provider_options_hardware_device_type set_decoder_provider_options_hardware_device_id "
    "set_decoder_provider_options_hardware_vendor_id clear_decoder_provider_options_hardware_device_type "
    "clear_decoder_provider_options_hardware_device_id clear_decoder_provider_options_hardware_vendor_id",
    "Model": "type device_type create_multimodal_processor create_streaming_processor",
    "Tokenizer": "encode decode encode_batch decode_batch apply_chat_template to_token_id create_stream update_options "
    "bos_token_id eos_token_ids pad_token_id bot_token_id eot_token_id bor_token_id eor_token_id",
    "TokenizerStream": "decode",
    "Adapters": "load unload",
    "GeneratorParams": "set_search_options get_search_options set_speculative_options get_speculative_options set_guidance try_graph_capture_with_max_batch_size",
    "Generator": "append_tokens generate_next_token is_done get_next_tokens get_sequence token_count get_logits set_logits "
    "get_speculative_stats set_active_adapter get_input get_output set_inputs set_model_input rewind_to snapshot_state set_hidden_states set_runtime_option",
    "Engine": "add_request step remove_request has_pending_requests",
    "Request": "add_tokens continue_with has_unseen_tokens get_unseen_token is_turn_complete is_done set_opaque_data "
    "get_opaque_data",
    "Tensor": "shape type data as_numpy",
    "NamedTensors": "keys __getitem__ __setitem__ __delitem__ __contains__ __len__",
    "Images": "open open_bytes",
    "Audios": "open open_bytes",
    "MultiModalProcessor": "",
    "StreamingProcessor": "",
    "MtpGenerator": "",
}
FUNCTIONS = (
    "set_log_options set_log_callback is_cuda_available is_dml_available is_rocm_available is_webgpu_available "
    "is_qnn_available is_openvino_available set_current_gpu_device_id get_current_gpu_device_id "
    "register_execution_provider_library unregister_execution_provider_library"
).split()


def script(*args, given="", **where):
    done = subprocess.run([sys.executable, *map(str, args)], input=given, capture_output=True, text=True, **where)
    return done.returncode, done.stdout, done.stderr


class NamesTest(GenaiCase):
    def test_all_are_there(self):
        for name, members in NAMES.items():
            for member in members.split():
                self.assertTrue(hasattr(getattr(og, name), member), f"{name}.{member}")
        for name in FUNCTIONS:
            self.assertTrue(callable(getattr(og, name)), name)
        self.assertEqual(set(og.__all__), set(NAMES) | set(FUNCTIONS))
        self.assertRegex(og.__version__, r"^\d+\.\d+\.\d+\+kiln\.")

    def test_devices(self):
        for name in FUNCTIONS:
            if name.startswith("is_"):
                self.assertIs(getattr(og, name)(), False)
        og.set_current_gpu_device_id(3)
        self.assertEqual(og.get_current_gpu_device_id(), 3)
        og.set_current_gpu_device_id(0)
        og.register_execution_provider_library("MIGraphXExecutionProvider", "/any")
        self.assertRaisesRegex(RuntimeError, "CUDA", og.register_execution_provider_library, "CUDAExecutionProvider", "/x")

    def test_what_there_is_not(self):
        for call in (og.Images.open, og.Audios.open_bytes, og.MultiModalProcessor, og.StreamingProcessor, og.MtpGenerator):
            self.assertRaisesRegex(RuntimeError, "not supported", call)

    def test_log(self):
        lines = []
        og.set_log_callback(lines.append)
        og.set_log_options(enabled=True, generate_next_token=True, hit_max_length=True, model_input_values=True)
        model = og.Model(str(FOLDER))
        params = og.GeneratorParams(model)
        params.set_search_options(max_length=6)
        g = og.Generator(model, params)
        g.append_tokens(GOLDEN[0]["prompt_ids"])
        while not g.is_done():
            g.generate_next_token()
        og.set_log_options(enabled=False)
        og.set_log_callback(None)
        a, b = GOLDEN[0]["greedy_ids"][4:6]
        self.assertEqual(
            lines, [f"generate_next_token: {a}", f"generate_next_token: {b}", "hit_max_length: 6 tokens"]
        )
        self.assertRaisesRegex(RuntimeError, "found 'shout'", og.set_log_options, shout=True)


class ScriptsTest(GenaiCase):
    def runs(self, *args, given="", code=0):
        found, out, err = script(*args, given=given)
        self.assertEqual(found, code, err)
        return out

    def test_programs_of_the_documentation(self):
        folder = folder_like_scripture(self)
        config = json.loads((folder / "genai_config.json").read_text())
        part = json.loads((EXAMPLES / "genai_config_migraphx_example.json").read_text())
        config["model"]["decoder"]["session_options"] = part["model"]["decoder"]["session_options"]
        (folder / "genai_config.json").write_text(json.dumps(config))
        out = self.runs(EXAMPLES / "migraphx_example.py", folder)
        self.assertTrue(GOLDEN[0]["text"].endswith(out.splitlines()[0][:60]) or out.splitlines()[0][:60] in GOLDEN[0]["text"])
        self.assertIn("target eigen", out)
        self.assertIn("in fp16", out)

    def test_generate(self):
        prompts = [g["prompt"] for g in GOLDEN[:2]]
        out = self.runs(EXAMPLES / "model-generate.py", "-m", FOLDER, "-v", "-e", "cpu", "-pr", *prompts)
        for g in GOLDEN[:2]:
            self.assertIn(g["text"][:60], out)
        self.assertRegex(out, r"Tokens: 80, time: ")
        out = self.runs(EXAMPLES / "model-generate.py", "-m", FOLDER, "--num_beams", "2", "--max_length", "12", "-pr", prompts[0])
        self.assertIn(prompts[0], out)

    def test_questions(self):
        args = [EXAMPLES / "model-qa.py", "-m", FOLDER, "-v", "--max_length", "50", "-e", "migraphx"]
        out = self.runs(*args, given=f"{GOLDEN[0]['prompt']}\n\nquit()\n")
        self.assertIn(GOLDEN[0]["text"][len(GOLDEN[0]["prompt"]) :][:60], out)
        self.assertRegex(out, r"Prompt: 4 tokens in .* answer: 46 tokens, ")
        self.assertIn("the reign", self.runs(*args, "-up", GOLDEN[0]["prompt"]))

    def test_chat(self):
        folder = folder_like_scripture(self, tokenizer_config__json={"chat_template": CHATML})
        args = [EXAMPLES / "model-chat.py", "-m", folder, "--max_length", "90"]
        out = self.runs(*args, "-r", given="Who is he?\nWho is he?\nquit()\n").split("Prompt (quit() ends): ")
        self.assertEqual(len(out), 4)
        self.assertTrue(out[1].strip())
        self.assertEqual(out[1], out[2])  # rewound

    def test_guidance(self):
        made = json.loads(self.runs(EXAMPLES / "guidance-example.py", "-m", FOLDER))
        self.assertEqual(sorted(made), ["name", "years"])
        out = self.runs(EXAMPLES / "guidance-example.py", "-m", FOLDER, "-t", "regex", "-d", "[0-9]{3}")
        self.assertRegex(out, "^[0-9]{3}\n$")

    def test_engine(self):
        out = self.runs(EXAMPLES / "model-engine.py", "-m", FOLDER)
        for g in GOLDEN[:2]:
            self.assertIn(g["text"][:60], out)

    def test_errors_end_a_script(self):
        code, _, err = script(EXAMPLES / "model-generate.py", "-m", "/nowhere")
        self.assertEqual(code, 1)
        self.assertIn("no genai_config.json in '/nowhere'", err)

    def test_verification(self):
        verify = "examples/genai/verify_kiln_genai.sh"
        where = dict(os.environ, PYTHON=sys.executable)
        done = subprocess.run(["bash", verify, FOLDER], capture_output=True, text=True, env=where)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for part in range(1, 7):
            self.assertIn(f"{part}. Checking", done.stdout)
        folder = folder_like_scripture(self)
        (folder / "tokenizer.json").rename(folder / "tokens.json")
        done = subprocess.run(["bash", verify, folder], capture_output=True, text=True, env=where)
        self.assertEqual(done.returncode, 1)
        self.assertIn("tokenizer.json", done.stdout)


class BenchmarkTest(GenaiCase):
    def test_a_benchmark_as_genai_has_it(self):
        """The calls of a benchmark: random tokens, min_length, one generator a run, logits apart from choosing."""
        import numpy as np

        model = og.Model(og.Config(str(FOLDER)))
        tokenizer = og.Tokenizer(model)
        for batch in (1, 2):
            tokens = np.random.default_rng(1).integers(1, 100, size=(batch, 16))
            prompt = [tokenizer.decode(tokens[0])] * batch
            self.assertEqual(len(tokenizer.encode_batch(prompt)), batch)
            params = og.GeneratorParams(model)
            params.set_search_options(
                do_sample=True, top_k=50, top_p=1.0, temperature=1.0, max_length=24, min_length=24, batch_size=batch
            )
            params.try_graph_capture_with_max_batch_size(batch)
            generator = og.Generator(model, params)
            generator.append_tokens(tokens)
            self.assertEqual(generator.get_logits().shape, (batch, 1, 2048))
            while not generator.is_done():
                generator.generate_next_token()
            self.assertEqual([len(generator.get_sequence(i)) for i in range(batch)], [24] * batch)
            del generator


if __name__ == "__main__":
    unittest.main()
