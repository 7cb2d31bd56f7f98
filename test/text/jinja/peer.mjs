// peer.mjs PACKAGE CASES.json: what @huggingface/jinja renders, as render_cases prints it.
import fs from "node:fs";

const { Template } = await import(process.argv[2]);
const results = JSON.parse(fs.readFileSync(process.argv[3], "utf8")).map((c) => {
  try {
    const text = new Template(c.template).render(c.variables);
    return { text };
  } catch (e) {
    return { error: String(e.message) };
  }
});
console.log(JSON.stringify(results));
