// A server of the model: what is asked, and what is shown of the answer.
// The words of a command as a shell splits them; nothing else that a shell does.
const wordsOf = (text) => {
  const words = [];
  for (const [, double, single, plain] of text.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g)) {
    words.push(plain ?? single ?? double.replace(/\\(.)/g, '$1'));
  }
  return words;
};
const quotedWord = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
const readServer = () => ({version: at('s-version').value.trim(), command: wordsOf(at('s-command').value)});

const SERVED_PARTS = [
  ['weights', 'weights_bytes'], ['activation', 'activation_bytes'], ['outside PyTorch', 'outside_pytorch_bytes'],
  ['KV cache', 'kv_cache_bytes'], ['CUDA graphs', 'cuda_graph_bytes'],
];
const verdictOfServer = (server) => {
  if (!server.starts) return `It does not start: ${server.reason}`;
  const tight = server.verdict === 'tight' ? ', but it is tight' : '';
  const requests = `${server.max_concurrency.toFixed(2)} requests of ${count(server.max_model_len)} tokens`;
  if (server.kv_cache_tokens === 0) return `It starts${tight}. It keeps no KV cache, and reads ${requests} in one step.`;
  return `It starts${tight}: ${count(server.kv_cache_tokens)} tokens of KV cache, ${requests} at once.`;
};
const serveCommandOf = (name, gpu, {version, command}) => ['gpumem', 'serve', name,
  ...(gpu ? ['--gpu', gpu] : []), ...(version ? ['--engine-version', version] : []), ...(command.length > 0 ? ['--', ...command] : [])].map(quotedWord).join(' ');

const showServer = (server, command) => {
  at('serve-verdict').textContent = verdictOfServer(server);
  const head = make('tr');
  head.append(make('th', 'On each GPU', {scope: 'col'}), make('th', 'Memory', {scope: 'col'}));
  at('serve-parts').replaceChildren(head);
  for (const [name, field] of SERVED_PARTS) {
    const row = make('tr');
    row.append(make('th', name, {scope: 'row'}), make('td', size(server[field])));
    at('serve-parts').append(row);
  }
  at('serve-assumed').replaceChildren(...server.assumed.map((line) => make('li', line)));
  at('serve-command').textContent = command;
  at('served').hidden = false;
};

let served = 0;  // how often a server was asked for
const clearServer = (status) => {
  served += 1;
  hide('served');
  hide('serve-fault');
  at('serve-status').textContent = status;
};
const estimateServer = async (model, job) => {
  clearServer('Computing…');
  const own = served;
  const asked = readServer();
  try {
    const reply = await Engine.ask('serve', model, {gpu: job.gpu}, {serve: asked});
    if (own !== served) return;
    at('serve-status').textContent = '';
    if (reply.text) showServer(JSON.parse(reply.text), serveCommandOf(model.name, job.gpu, asked));
    else showFault(at('serve-fault'), reply.says);
  } catch (error) {
    if (own === served) clearServer(`Ended: ${error.message}.`);
  }
};
