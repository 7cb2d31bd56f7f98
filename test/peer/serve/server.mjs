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
  rss() {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.process.pid}/status`, 'utf8'))[1]);
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
