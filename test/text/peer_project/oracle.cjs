// node oracle.cjs PEER FILE LINES: ids of each line, without and with special tokens, and the text of the first, as one
// JSON value a line, by Hugging Face's native tokenizers in the folder PEER of npm's modules.
const path = require('path')
const fs = require('fs')
const { Tokenizer } = require(path.resolve(process.argv[2], 'tokenizers'))

async function main() {
  const tokenizer = Tokenizer.fromFile(process.argv[3])
  const lines = fs.readFileSync(process.argv[4], 'utf8').split('\n').slice(0, -1)
  const out = []
  for (const line of lines) {
    const plain = (await tokenizer.encode(line, null, { addSpecialTokens: false })).getIds()
    const special = (await tokenizer.encode(line, null, { addSpecialTokens: true })).getIds()
    out.push(JSON.stringify([plain, special, await tokenizer.decode(plain, true)]))
  }
  fs.writeFileSync(1, out.join('\n') + '\n')
}
main()
