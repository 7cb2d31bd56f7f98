"""kiln.genai: the trained model's continuations through every way in and out."""

import json
import threading
import time
import unittest

import kiln
import numpy as np
from help import CHATML, FOLDER, GOLDEN, GenaiCase, folder_like_scripture
from kiln import genai

MODEL = genai.Model(FOLDER, threads=2)
TOKENIZER = genai.Tokenizer(MODEL)


def generator(model=MODEL, **options):
    params = genai.GeneratorParams(model)
    params.set_search_options(**options)
    return genai.Generator(model, params)


def run(g):
    while not g.is_done():
        g.generate_next_token()
    return g.get_sequence(0).tolist()


class TextTest(GenaiCase):
    def test_golden_texts(self):
        for golden in GOLDEN:
            g = generator(max_length=len(golden["greedy_ids"]))
            ids = TOKENIZER.encode(golden["prompt"])
            self.assertEqual((ids.dtype, ids.tolist()), (np.int32, golden["prompt_ids"]))
            g.append_tokens(ids)
            stream, text = TOKENIZER.create_stream(), golden["prompt"]
            while not g.is_done():
                g.generate_next_token()
                made = g.get_next_tokens()
                self.assertEqual((made.dtype, made.shape), (np.int32, (1,)))
                text += stream.decode(made[0])
            self.assertEqual(g.get_sequence(0).tolist(), golden["greedy_ids"])
            self.assertEqual(g.token_count(), len(golden["greedy_ids"]))
            self.assertEqual(text + stream.finish(), golden["text"])
            self.assertEqual(TOKENIZER.decode(g.get_sequence(0)), golden["text"])

    def test_tokens_come_in_any_form(self):
        wanted = GOLDEN[0]["prompt_ids"]
        forms = [wanted, tuple(wanted), [wanted], np.array(wanted), np.array([wanted], np.int64)]
        forms += [np.array(wanted, np.uint16), genai.Tensor(np.array([wanted], np.int32)), [np.int32(t) for t in wanted]]
        for form in forms:
            g = generator(max_length=20)
            g.append_tokens(form)
            self.assertEqual(run(g), GOLDEN[0]["greedy_ids"][:20], form)
            if not isinstance(form, genai.Tensor) and np.ndim(form) == 1:
                self.assertEqual(TOKENIZER.decode(form), GOLDEN[0]["prompt"])

    def test_side_by_side(self):
        texts = [g["prompt"] for g in GOLDEN]
        batch = TOKENIZER.encode_batch(texts)
        longest = max(len(g["prompt_ids"]) for g in GOLDEN)
        self.assertEqual(batch.shape(), [len(texts), longest])
        self.assertEqual(batch.type(), 6)
        for rows in (batch, batch.as_numpy(), [g["prompt_ids"] for g in GOLDEN], [np.array(g["prompt_ids"]) for g in GOLDEN]):
            self.assertEqual(TOKENIZER.decode_batch(rows), texts)
        self.assertEqual(TOKENIZER.decode_batch(GOLDEN[0]["prompt_ids"]), texts[:1])
        for tokens in (batch, [g["prompt_ids"] for g in GOLDEN], batch.as_numpy()):
            g = generator(batch_size=len(texts), max_length=longest + 10)
            g.append_tokens(tokens)
            for _ in range(10):
                g.generate_next_token()
            self.assertEqual(len(g.get_next_tokens()), len(texts))
            for i, golden in enumerate(GOLDEN):
                n = len(golden["prompt_ids"])
                self.assertEqual(g.get_sequence(i).tolist()[longest:], golden["greedy_ids"][n : n + 10])
        self.refuses("invalid_argument", "batch_size is 2, and 3 sequences", generator(batch_size=2).append_tokens, [[1]] * 3)

    def test_beams(self):
        g = generator(max_length=16, num_beams=3, num_return_sequences=2)
        g.append_tokens(GOLDEN[0]["prompt_ids"])
        first = run(g)
        self.assertEqual(len(first), 16)
        self.assertNotEqual(first, g.get_sequence(1).tolist())
        self.refuses("invalid_argument", "sequence 2 of 2", g.get_sequence, 2)

    def test_sampling_by_seed(self):
        def drawn(seed):
            g = generator(max_length=30, do_sample=True, top_k=40, temperature=1.5, random_seed=seed)
            g.append_tokens(GOLDEN[0]["prompt_ids"])
            return run(g)

        self.assertEqual(drawn(7), drawn(7))
        self.assertNotEqual(drawn(7), drawn(8))

    def test_rewinding_and_further_turns(self):
        ids = GOLDEN[0]["greedy_ids"]
        g = generator(max_length=len(ids))
        g.append_tokens(ids[:4])
        self.assertEqual(run(g), ids)
        for n in (30, 10, 4):
            g.rewind_to(n)
            self.assertEqual((g.token_count(), g.is_done()), (n, False))
            self.assertEqual(run(g), ids)
        g.rewind_to(0)
        g.append_tokens(ids[:2])
        g.append_tokens(ids[2:4])
        self.assertEqual(run(g), ids)
        self.refuses("invalid_argument", "Cannot rewind", g.rewind_to, len(ids) + 1)

    def test_logits(self):
        g = generator(max_length=50)
        g.append_tokens(GOLDEN[0]["prompt_ids"])
        scores = g.get_logits()
        self.assertEqual((scores.dtype, scores.shape), (np.float32, (1, 1, MODEL.vocabulary_size)))
        self.assertEqual(scores.argmax(), GOLDEN[0]["greedy_ids"][4])
        np.testing.assert_array_equal(g.get_output("logits"), scores)
        self.refuses("not_found", "present.0.key", g.get_output, "present.0.key")  # caches are in blocks
        other = np.full_like(scores, -5)
        other[0, 0, 77] = 1
        g.set_logits(other)
        g.generate_next_token()
        self.assertEqual(g.get_next_tokens().tolist(), [77])
        self.refuses("shape_mismatch", "logits", g.set_logits, np.zeros((1, 1, 5), np.float32))
        self.refuses("not_found", "no output 'hidden'", g.get_output, "hidden")

    def test_guidance(self):
        schema = {
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": 9}, "age": {"type": "integer", "enum": [3, 12]}},
            "required": ["name", "age"],
        }
        params = genai.GeneratorParams(MODEL)
        params.set_search_options(max_length=90)
        params.set_guidance("json_schema", json.dumps(schema))
        for _ in range(2):  # each generator begins anew
            g = genai.Generator(MODEL, params)
            g.append_tokens(TOKENIZER.encode("And his name was"))
            n = g.token_count()
            made = json.loads(TOKENIZER.decode(run(g)[n:]))
            self.assertIn(made["age"], [3, 12])
            g.rewind_to(n)
            self.assertEqual(json.loads(TOKENIZER.decode(run(g)[n:])), made)
        params.set_guidance("regex", "(yea|nay)!")
        g = genai.Generator(MODEL, params)
        g.append_tokens(TOKENIZER.encode("And he said"))
        n = g.token_count()
        self.assertRegex(TOKENIZER.decode(run(g)[n:]), "^(yea|nay)!$")
        params.set_guidance("lark_grammar", 'start: ANSWER "!"\nANSWER: "yea" | "nay"')
        g = genai.Generator(MODEL, params)
        g.append_tokens(TOKENIZER.encode("And he said"))
        self.assertRegex(TOKENIZER.decode(run(g)[n:]), "^(yea|nay)!$")
        made = {}
        for forced in (False, True):
            params.set_guidance("regex", "Jerusalem and Babylon, (yea|nay)!", enable_ff_tokens=forced)
            g = genai.Generator(MODEL, params)
            g.append_tokens(TOKENIZER.encode("And he said"))
            steps = 0
            while not g.is_done():
                g.generate_next_token()
                steps += 1
            made[forced] = TOKENIZER.decode(g.get_sequence(0)[n:]), steps
        self.assertRegex(made[True][0], "^Jerusalem and Babylon, (yea|nay)!$")
        self.assertLess(made[True][1], made[False][1])
        params.set_guidance("", "")
        g = genai.Generator(MODEL, params)
        g.append_tokens(GOLDEN[0]["prompt_ids"])
        g.generate_next_token()
        self.assertEqual(g.get_next_tokens().tolist(), GOLDEN[0]["greedy_ids"][4:5])
        self.refuses("malformed", "", params.set_guidance, "regex", "(a")
        self.refuses("not_found", "json_schema, regex or lark_grammar.*found xml", params.set_guidance, "xml", "")

    def test_threads(self):
        wanted = {i: GOLDEN[i % len(GOLDEN)]["greedy_ids"] for i in range(4)}
        found = {}

        def work(i):
            g = generator(max_length=len(wanted[i]))
            g.append_tokens(wanted[i][: len(GOLDEN[i % len(GOLDEN)]["prompt_ids"])])
            found[i] = run(g)

        threads = [threading.Thread(target=work, args=(i,)) for i in wanted]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(found, wanted)
        # one generator in several threads: they wait for each other
        g = generator(max_length=60)
        g.append_tokens(GOLDEN[0]["prompt_ids"])
        threads = [threading.Thread(target=lambda: [g.generate_next_token() for _ in range(10)]) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            while t.is_alive():
                g.get_next_tokens(), g.token_count()
                t.join(0.001)
        self.assertEqual(g.get_sequence(0).tolist(), GOLDEN[0]["greedy_ids"][:44])

    def test_the_interpreter_is_free_while_a_model_loads_and_runs(self):
        def load():
            genai.Model(FOLDER, threads=1)

        def prefill():
            g = generator(max_length=256)
            g.append_tokens([5] * 255)

        for work in (load, lambda: [prefill() for _ in range(8)]):
            longest = []  # wait of this thread, as a share of the work's time: what else the machine does spoils single tries
            while not longest or min(longest) >= 0.6:
                self.assertLess(len(longest), 20, longest)
                ends, ticks = [], []
                thread = threading.Thread(target=lambda: ends.extend([time.perf_counter(), work(), time.perf_counter()]))
                thread.start()
                while thread.is_alive():
                    ticks.append(time.perf_counter())
                thread.join()
                longest.append(max(b - a for a, b in zip(ticks, ticks[1:])) / (ends[2] - ends[0]))

    def test_memory(self):
        def resident():
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * 4096

        def once():
            g = generator(max_length=40)
            g.append_tokens(GOLDEN[0]["prompt_ids"])
            g.generate_next_token()
            return g.get_logits()[0, 0, 0]

        for _ in range(100):
            once()
        before = resident()
        for _ in range(1000):
            once()
        self.assertLess(resident() - before, 4 << 20)


class TokenizerTest(GenaiCase):
    def test_roles_and_options(self):
        self.assertEqual(TOKENIZER.eos_token_ids.tolist(), [0])
        self.assertEqual((TOKENIZER.bos_token_id, TOKENIZER.pad_token_id), (0, 0))
        self.refuses("not_found", "bot_token_id", lambda: TOKENIZER.bot_token_id)
        self.assertEqual(TOKENIZER.to_token_id("And"), TOKENIZER.encode("And")[0])
        self.refuses("not_found", "spelling.*found nowhere here", TOKENIZER.to_token_id, "nowhere here")
        t = genai.Tokenizer(MODEL)
        whole = [*TOKENIZER.encode("And").tolist(), 0]
        self.assertEqual(t.decode(whole), "And")
        t.update_options(skip_special_tokens="false", add_special_tokens=False)
        self.assertNotEqual(t.decode(whole), "And")
        self.assertEqual(TOKENIZER.decode(whole), "And")
        self.refuses("not_found", "found 'shout'|found shout", t.update_options, shout=True)
        self.refuses("invalid_argument", "true or false", t.update_options, skip_special_tokens="maybe")

    def test_wrong_tokens(self):
        self.refuses("invalid_argument", "integers", TOKENIZER.decode, np.array([0.5]))
        self.refuses("invalid_argument", "31 bits", TOKENIZER.decode, np.array([2**40]))
        self.refuses("invalid_argument", "rank of tokens", generator().append_tokens, np.zeros((1, 1, 1), np.int32))
        self.refuses("invalid_argument", "input_ids is empty", generator().append_tokens, [])
        self.refuses("invalid_argument", "token 4000", generator().append_tokens, [4000])

    def test_incomplete_characters_are_held_back(self):
        text = "ab\u00e9\u4e2d\U0001f600c"
        stream = TOKENIZER.create_stream()
        pieces = [stream.decode(t) for t in TOKENIZER.encode(text)]
        self.assertEqual("".join(pieces) + stream.finish(), text)
        self.assertNotIn("\ufffd", "".join(pieces))

    def test_chat_template(self):
        messages = [{"role": "user", "content": "Hi"}]
        self.refuses("not_found", "no chat template", TOKENIZER.apply_chat_template, json.dumps(messages))
        model = genai.Model(folder_like_scripture(self, tokenizer_config__json={"chat_template": CHATML}))
        t = genai.Tokenizer(model)
        self.assertEqual(t.apply_chat_template(json.dumps(messages)), "<user>Hi</><assistant>")
        self.assertEqual(t.apply_chat_template(messages, add_generation_prompt=False), "<user>Hi</>")
        self.assertEqual(t.apply_chat_template(messages, template_str="", tools="", note="!"), "<user>Hi</>!<assistant>")
        tools = [{"type": "function", "function": {"name": "f"}}]
        self.assertEqual(t.apply_chat_template(messages, tools=json.dumps(tools)), "<user>Hi</>[1 tools]<assistant>")
        self.assertEqual(t.apply_chat_template(messages, template_str="{{ messages[0].content }}?"), "Hi?")
        self.refuses("malformed", "line 1", t.apply_chat_template, messages, template_str="{% if %}")


class TensorTest(GenaiCase):
    def test_tensors(self):
        for kind, number in (("float32", 1), ("int32", 6), ("int64", 7), ("float16", 10)):
            array = np.arange(6, dtype=kind).reshape(2, 3)
            t = genai.Tensor(array)
            self.assertEqual((t.shape(), t.type(), len(t)), ([2, 3], number, 2))
            array[0, 0] = 9  # a copy
            np.testing.assert_array_equal(t.as_numpy(), np.arange(6).reshape(2, 3))
            self.assertEqual(t.as_numpy().ctypes.data, t.data())

    def test_named_tensors(self):
        named = genai.NamedTensors()
        named["a"] = np.ones(3, np.float32)
        named["b"] = genai.Tensor(np.zeros((1, 2), np.int64))
        self.assertEqual((len(named), named.keys(), "a" in named, "c" in named), (2, ["a", "b"], True, False))
        np.testing.assert_array_equal(named["a"].as_numpy(), [1, 1, 1])
        del named["a"]
        self.assertRaises(KeyError, lambda: named["a"])
        self.assertEqual(named.keys(), ["b"])


class ConfigTest(GenaiCase):
    def test_seeds_form_of_provider_options(self):
        options = [{"name": "MIGraphX", "options": {"device_id": "0", "fp16_enable": "1"}}]
        folder = folder_like_scripture(self, {"model.decoder.session_options": {"provider_options": options}})
        model = genai.Model(str(folder))
        self.assertEqual((model.type, model.device_type, model.target), ("llama", "CPU", "eigen"))
        self.assertTrue(any(remark.startswith("in fp16") for remark in model.remarks), model.remarks)
        self.assertTrue(any("device_id 0" in remark and "no effect" in remark for remark in model.remarks), model.remarks)
        g = generator(model, max_length=20)
        g.append_tokens(GOLDEN[0]["prompt_ids"])
        self.assertEqual(run(g), GOLDEN[0]["greedy_ids"][:20])

    def test_changes(self):
        c = genai.Config(FOLDER)
        c.append_provider("cuda")
        self.refuses("unsupported", "provider 'cuda'", genai.Model, c)
        c.clear_providers()
        c.set_provider_option("migraphx", "target", "ref")
        c.overlay('{"search": {"max_length": 9}}')
        model = genai.Model(c)
        self.assertEqual(model.target, "ref")
        self.assertEqual(genai.GeneratorParams(model).get_search_options()["max_length"], 9)
        c.set_provider_option("MIGraphX", "target", "eigen")
        self.assertEqual(genai.Model(c, target="ref").target, "ref")
        self.refuses("malformed", "serch", c.overlay, '{"serch": {}}')
        self.refuses("not_found", "genai_config", genai.Config, "/nowhere")
        c.set_decoder_provider_options_hardware_device_type("MIGraphX", "npu")
        self.refuses("unsupported", "npu", genai.Model, c)
        c.clear_decoder_provider_options_hardware_device_type("MIGraphX")
        c.set_decoder_provider_options_hardware_device_id("MIGraphX", 0)
        c.set_decoder_provider_options_hardware_vendor_id("MIGraphX", 4098)
        genai.Model(c)

    def test_model_from_memory(self):
        folder = folder_like_scripture(self)
        (folder / "model.onnx").unlink()
        c = genai.Config(folder)
        data = (FOLDER / "model.onnx").read_bytes()
        c.add_model_data("model.onnx", data)
        g = generator(genai.Model(c), max_length=20)
        g.append_tokens(GOLDEN[0]["prompt_ids"])
        self.assertEqual(run(g), GOLDEN[0]["greedy_ids"][:20])
        c.remove_model_data("model.onnx")
        with self.assertRaises(genai.Error):
            genai.Model(c)

    def test_search_options(self):
        params = genai.GeneratorParams(MODEL)
        params.set_search_options(top_k=np.int64(5), top_p=np.float32(0.5), do_sample=np.bool_(True), min_length=3)
        found = params.get_search_options()
        self.assertEqual((found["top_k"], found["top_p"], found["do_sample"], found["min_length"]), (5, 0.5, True, 3))
        self.refuses("not_found", "max_new_tokens", params.set_search_options, max_new_tokens=3)
        self.refuses("invalid_argument", "do_sample", params.set_search_options, do_sample=2)
        self.refuses("invalid_argument", "top_k.*'five'", params.set_search_options, top_k="five")
        self.refuses("invalid_argument", "max_length", generator, max_length=4000)
        self.refuses("invalid_argument", "TopK and TopP cannot", generator, num_beams=2, do_sample=True)
        self.assertEqual(params.get_search_options(), found)

    def test_errors_are_python_programs_errors(self):
        e = self.refuses("invalid_argument", "exceeds max length", generator(max_length=3).append_tokens, [1] * 4)
        for kind in (RuntimeError, ValueError, kiln.Error, kiln.ArgumentError, genai.ArgumentError):
            self.assertIsInstance(e, kind)
        with self.assertRaises(kiln.Error) as caught:
            kiln.compile("/nowhere.onnx")
        self.assertNotIsInstance(caught.exception, genai.Error)
        for call in (MODEL.create_multimodal_processor, generator().snapshot_state):
            self.refuses("unsupported", "not supported", call)
        self.refuses("unsupported", "not supported", generator().set_model_input, "x", np.zeros(1))
        g = generator(max_length=9)
        g.append_tokens([1])
        g.set_runtime_option("terminate_session", "1")
        self.refuses("canceled", "terminated", g.generate_next_token)
        g.set_runtime_option("terminate_session", "0")
        g.generate_next_token()
        self.refuses("unsupported", "lang_id", g.set_runtime_option, "lang_id", "1")


class EngineTest(GenaiCase):
    def request(self, golden, length):
        params = genai.GeneratorParams(MODEL)
        params.set_search_options(max_length=length)
        r = genai.Request(params)
        r.add_tokens(np.array(golden["prompt_ids"], np.int32))
        return r

    def test_requests_side_by_side(self):
        engine = genai.Engine(MODEL)
        self.assertIsNone(engine.step())
        made = {}
        for i, golden in enumerate(GOLDEN):
            r = self.request(golden, len(golden["prompt_ids"]) + 5 + i)
            r.set_opaque_data(i)
            made[i] = list(golden["prompt_ids"])
            engine.add_request(r)
            self.assertRaises(genai.ArgumentError, engine.add_request, r)
            self.assertRaises(TypeError, engine.add_request, None)
            self.assertRaises(TypeError, engine.remove_request, None)
        while r := engine.step():
            i = r.get_opaque_data()
            while r.has_unseen_tokens():
                made[i].append(r.get_unseen_token())
            if r.is_turn_complete():
                engine.remove_request(r)
        self.assertFalse(engine.has_pending_requests())
        for i, golden in enumerate(GOLDEN):
            self.assertEqual(made[i], golden["greedy_ids"][: len(golden["prompt_ids"]) + 5 + i])

    def test_guided_requests(self):
        params = genai.GeneratorParams(MODEL)
        steps = {}
        for forced in (False, True):
            params.set_guidance("regex", "Jerusalem and Babylon, (yea|nay)!", enable_ff_tokens=forced)
            request, made, steps[forced] = genai.Request(params), [], 0
            request.add_tokens(TOKENIZER.encode("And he said"))
            engine = genai.Engine(MODEL)
            engine.add_request(request)
            while ready := engine.step():
                steps[forced] += 1
                while ready.has_unseen_tokens():
                    made.append(ready.get_unseen_token())
            self.assertRegex(TOKENIZER.decode(made), "^Jerusalem and Babylon, (yea|nay)!$")
            self.assertEqual(request.ended_by(), "end_token")
        self.assertLess(steps[True], steps[False])

    def test_stop_strings(self):
        golden = GOLDEN[0]
        prompt, whole = golden["prompt_ids"], golden["greedy_ids"]
        text = TOKENIZER.decode(whole[len(prompt) :])
        stop = text[9:15]
        params = genai.GeneratorParams(MODEL)
        params.set_search_options(max_length=len(whole), stop_strings=["no text of it", stop])
        self.assertEqual(params.get_search_options()["stop_strings"], ["no text of it", stop])
        engine, request = genai.Engine(MODEL), genai.Request(params)
        request.add_tokens(prompt)
        self.assertEqual(request.ended_by(), "open")
        engine.add_request(request)
        stream, shown = TOKENIZER.create_stream(stop_strings=[stop]), ""
        while ready := engine.step():
            while ready.has_unseen_tokens():
                shown += stream.decode(ready.get_unseen_token())
        self.assertTrue(stream.is_stopped())
        self.assertEqual(shown + stream.finish(), text[: text.index(stop)])
        self.assertEqual(request.ended_by(), "stop_string")
        g = genai.Generator(MODEL, params)
        g.append_tokens(prompt)
        self.assertLess(len(run(g)), len(whole))
        self.assertEqual(g.ended_by(), "stop_string")
        params.set_search_options(stop_strings="x")
        self.assertEqual(params.get_search_options()["stop_strings"], ["x"])
        self.refuses("invalid_argument", "stop_strings", params.set_search_options, stop_strings=["a", 3])
        params.set_search_options(stop_strings=[""])
        self.refuses("invalid_argument", "stop_strings", genai.Generator, MODEL, params)

    def test_requests_outlive_their_engine(self):
        engine, r = genai.Engine(MODEL), self.request(GOLDEN[0], len(GOLDEN[0]["prompt_ids"]) + 3)
        engine.add_request(r)
        self.assertIs(engine.step(), r)
        del engine
        self.assertTrue(r.has_unseen_tokens())
        made = [r.get_unseen_token()]
        self.assertFalse(r.is_done())
        engine = genai.Engine(MODEL)  # another one goes on with it
        engine.add_request(r)
        while engine.step():
            while r.has_unseen_tokens():
                made.append(r.get_unseen_token())
        n = len(GOLDEN[0]["prompt_ids"])
        self.assertEqual(made, GOLDEN[0]["greedy_ids"][n : n + 3])
        self.assertEqual(r.ended_by(), "max_length")

    def test_further_turns_and_errors(self):
        engine, r = genai.Engine(MODEL), self.request(GOLDEN[0], 6)
        engine.add_request(r)
        self.assertRaises(genai.ArgumentError, r.continue_with, [1])
        while engine.step():
            pass
        self.assertTrue(r.is_done())
        self.assertRaises(genai.ArgumentError, r.add_tokens, [1])
        self.refuses("invalid_argument", "exceeds max length", r.continue_with, [1])
        self.assertIsNone(engine.step())
        self.assertEqual([r.get_unseen_token() for _ in range(2)], GOLDEN[0]["greedy_ids"][4:6])
        self.assertRaises(genai.ArgumentError, r.get_unseen_token)


if __name__ == "__main__":
    unittest.main()
