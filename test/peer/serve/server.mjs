// A server of kiln's as a process of its own.
import { spawn, execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class Server {
  constructor(program, words) {
    this.lines = [];
    this.process = spawn(program, ['serve', '--port', '0', ...words], { stdio: ['ignore', 'inherit', 'pipe'] });
    this.ended = new Promise((done) => this.process.on('exit', (code, signal) => done(code ?? signal)));
    let rest = '';
    this.url = new Promise((done, failed) => {
      this.process.stderr.on('data', (bytes) => {
        rest += bytes;
        const all = rest.split('\n');
        rest = all.pop();
        for (const text of all) {
          let line;
          try {
            line = JSON.parse(text);
          } catch {
            failed(new Error(text));
            continue;
          }
          this.lines.push(line);
          if (line.event === 'listen' && line.text.startsWith('http')) done(line.text);
        }
      });
      this.ended.then((code) => failed(new Error(`the server ended with ${code}: ${rest}`)));
    });
  }
  // KiB of resident memory, now and at most since it began.
  rss() {
    return this.memory('VmRSS');
  }
  peak() {
    return this.memory('VmHWM');
  }
  memory(name) {
    return Number(new RegExp(`${name}:\\s+(\\d+)`).exec(readFileSync(`/proc/${this.process.pid}/status`, 'utf8'))[1]);
  }
  // Ends it and gives its exit status.
  async end(signal = 'SIGTERM') {
    this.process.kill(signal);
    return this.ended;
  }
}

// The trained model with a chat template.
export function chatty(scripture) {
  const root = mkdtempSync(join(tmpdir(), 'kiln_serve_'));
  const folder = join(root, 'chatty');
  mkdirSync(folder);
  for (const name of ['genai_config.json', 'model.onnx', 'tokenizer.json'])
    copyFileSync(join(scripture, name), join(folder, name));
  writeFileSync(join(folder, 'chat_template.jinja'), '{% for m in messages %}{{ m.content }}{% endfor %}');
  return { folder, remove: () => rmSync(root, { recursive: true }) };
}

// A folder of sentence-transformers: a small random llama, whose last token's state stands for a text.
export function embedding(scripture) {
  const root = mkdtempSync(join(tmpdir(), 'kiln_embed_'));
  const folder = join(root, 'vectors');
  mkdirSync(join(folder, '1_Pooling'), { recursive: true });
  copyFileSync(join(scripture, 'tokenizer.json'), join(folder, 'tokenizer.json'));
  const put = (name, o) => writeFileSync(join(folder, name), JSON.stringify(o));
  put('config.json', { model_type: 'llama', num_hidden_layers: 1, hidden_size: 64, num_attention_heads: 4, num_key_value_heads: 2,
                       head_dim: 16, intermediate_size: 96, vocab_size: 2048, max_position_embeddings: 32, rms_norm_eps: 1e-5 });
  put('modules.json', ['Transformer', 'Pooling', 'Normalize'].map((t, idx) => (
    { idx, name: `${idx}`, path: idx ? `${idx}_${t}` : '', type: `sentence_transformers.models.${t}` })));
  put('1_Pooling/config.json', { word_embedding_dimension: 64, pooling_mode_lasttoken: true });
  const layer = 'model.layers.0.', own = [64, 64], shared = [32, 64];
  const shapes = { 'model.embed_tokens.weight': [2048, 64], [layer + 'input_layernorm.weight']: [64], [layer + 'self_attn.q_proj.weight']: own,
                   [layer + 'self_attn.k_proj.weight']: shared, [layer + 'self_attn.v_proj.weight']: shared,
                   [layer + 'self_attn.o_proj.weight']: own, [layer + 'post_attention_layernorm.weight']: [64],
                   [layer + 'mlp.gate_proj.weight']: [96, 64], [layer + 'mlp.up_proj.weight']: [96, 64],
                   [layer + 'mlp.down_proj.weight']: [64, 96], 'model.norm.weight': [64] };
  const header = {}, parts = [];
  let at = 0, seed = 1;
  for (const [name, shape] of Object.entries(shapes)) {
    const values = Float32Array.from({ length: shape.reduce((a, b) => a * b) },
                                     () => ((seed = (seed * 1103515245 + 12345) % 2147483648) / 1073741824 - 1) * 0.3);
    header[name] = { dtype: 'F32', shape, data_offsets: [at, at += values.byteLength] };
    parts.push(Buffer.from(values.buffer));
  }
  const text = Buffer.from(JSON.stringify(header)), length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  writeFileSync(join(folder, 'model.safetensors'), Buffer.concat([length, text, ...parts]));
  return { folder, remove: () => rmSync(root, { recursive: true }) };
}

export function genaiRun(program, folder, prompt, tokens, promptTokens) {
  const out = execFileSync(program, ['genai', 'run', folder, '--prompt', prompt, '--search', `max_length=${promptTokens + tokens}`]);
  return out.toString().slice(0, -1);
}

// Sends bytes as they are; what came back when the server closed the connection, or after so many ms.
export function raw(url, bytes, ms = 30000) {
  const { hostname, port } = new URL(url);
  return new Promise((done) => {
    let out = '';
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    const end = () => (socket.destroy(), done(out));
    const timer = setTimeout(end, ms);
    socket.on('data', (b) => (out += b));
    socket.on('error', () => undefined);
    socket.on('close', () => (clearTimeout(timer), done(out)));
  });
}
