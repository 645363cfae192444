// The form of a job, made from the library's list of options: an option that is added there appears here.
const MAIN = ['gpu', 'batch_size', 'seq_length', 'input', 'precision', 'optimizer', 'lora', 'quantize', 'checkpointing', 'fused'];
const LAYOUT = ['data_parallel', 'sharding', 'reshard_after_forward', 'semi_sync', 'tensor_parallel', 'sequence_parallel',
  'pipeline_parallel', 'virtual_stages', 'schedule', 'pipeline_layers', 'first_stage_layers', 'last_stage_layers', 'context_parallel', 'expert_parallel',
  'expert_imbalance', 'megatron_options', 'rank'];
// Words for people where an option's name is not one.
const LABELS = {gpu: 'GPU', seq_length: 'Sequence length', input: "One sample's shape", rank: 'Rank shown', lora: 'LoRA rank',
  checkpointing: 'Checkpointing', alloc_conf: 'Allocator settings', lora_targets: 'LoRA targets', lora_dtype: 'LoRA type',
  lora_dropout: 'LoRA dropout', peft: 'PEFT method', peft_options: 'PEFT settings', base_dtype: 'Type of frozen weights', cudnn_benchmark: 'cuDNN benchmark', model: 'Trained model',
  image: 'Size of images', images: 'Images per sample', frames: 'Frames per video', seconds: 'Seconds per sound', parts: 'Parts on the GPU', resident: 'Other tensors, MiB', ema: 'Average of weights',
  accumulate: 'Gradient accumulation', compile: 'torch.compile', batch_lengths: 'Lengths of batches', samples: 'Samples per epoch', lengths: 'Tokens of samples',
  lengths_options: 'Batches of these', megatron_options: "Megatron's arguments"};
const fields = new Map();  // option's name → {option, element, counter}
const optionNamed = new Map();  // the same without the form, which is made after the first answer is shown

const choicesOf = (option, about) => {
  if (option.name === 'gpu') return about.gpus.map(({name, capacity_bytes}) => [name, `${name} (${gib(capacity_bytes)} GiB)`]);
  if (option.name === 'estimator') return about.estimators.map((name) => [name, name]);
  if (option.name === 'rank') return option.choices.filter((name) => name !== 'all').map((name) => [name, name]);
  const choices = (option.choices || []).map((name) => [name, name.replace(/:N$/, ', every N')]);
  if (option.type === 'switch' || (option.type === 'flag' && option.default === '')) choices.unshift(['false', 'off'], ['true', 'on']);
  // Without a default of its own, the loop or the model decides.
  if (choices.length > 0 && option.default === '') choices.unshift(['', 'as the loop or the model has it']);
  return choices;
};

const makeSelect = (id, option, choices) => {
  const select = make('select', null, {id});
  for (const [value, text] of choices) select.append(make('option', text, {value}));
  select.value = option.default;
  return select;
};

const makeInput = (id, option) => {
  const input = make('input', null, {id, type: 'text'});
  if (option.type === 'flag') {
    input.type = 'checkbox';
    input.checked = option.default === 'true';
  } else if (option.type === 'whole') {
    Object.assign(input, {type: 'number', min: '1', step: '1', inputMode: 'numeric'});
  } else if (option.type === 'fraction') {
    Object.assign(input, {type: 'number', min: '0', step: 'any', inputMode: 'decimal'});
  }
  if (option.type !== 'flag') input.placeholder = option.default === '' || option.default === '0' ? '' : option.default;
  return input;
};

// For a choice such as "every:N".
const makeCounter = (id, label, select) => {
  const counter = make('input', null, {id: `${id}-n`, type: 'number', min: '1', 'aria-label': `${label}: N`, value: '2'});
  counter.hidden = true;
  select.addEventListener('change', () => { counter.hidden = !select.value.endsWith(':N'); });
  return counter;
};

const makeField = (option, about) => {
  const id = `o-${option.name}`;
  const text = LABELS[option.name] || titled(option.name);
  const label = make('label', text, {for: id});
  const field = make('div', null, {class: option.name === 'gpu' ? 'field wide' : 'field'});
  const choices = choicesOf(option, about);
  const element = choices.length > 0 ? makeSelect(id, option, choices) : makeInput(id, option);
  const entry = {option, element, counter: null};
  if (element.type === 'checkbox') {
    const row = make('div', null, {class: 'check'});
    row.append(element, label);
    field.append(row);
  } else {
    field.append(label, element);
  }
  if (choices.some(([value]) => value.endsWith(':N'))) {
    entry.counter = makeCounter(id, text, element);
    const row = make('div', null, {class: 'counted'});
    element.replaceWith(row);
    row.append(element, entry.counter);
  }
  // All help at once would hide the fields: that of the most used stands below them, of the one that has the focus.
  const short = MAIN.includes(option.name) || LAYOUT.includes(option.name);
  const help = make('p', option.help, {id: `${id}-help`, class: 'help'});
  help.hidden = short;
  field.title = option.help;
  element.setAttribute('aria-describedby', help.id);
  element.dataset.flag = option.flag;
  field.append(help);
  fields.set(option.name, entry);
  return field;
};

const makeForm = (about) => {
  const options = new Map(about.options.map((option) => [option.name, option]));
  const place = (name, where) => { if (options.has(name)) at(where).append(makeField(options.get(name), about)); };
  for (const [where, help] of [['main-options', 'main-help'], ['layout-options', 'layout-help']]) {
    at(where).addEventListener('focusin', ({target}) => {
      const entry = fields.get(target.id.slice(2));
      if (entry) at(help).textContent = `${LABELS[entry.option.name] || titled(entry.option.name)}: ${entry.option.help}.`;
    });
  }
  for (const name of MAIN) place(name, 'main-options');
  for (const name of LAYOUT) place(name, 'layout-options');
  for (const {name} of about.options) if (!fields.has(name)) place(name, 'more-options');
  at('p-framework').append(make('option', 'any', {value: 'any'}));
  for (const name of about.frameworks) at('p-framework').append(make('option', name, {value: name}));
};

// As JSON takes it; undefined where it is the default.
const valueOf = ({option, element, counter}) => {
  if (element.type === 'checkbox') return String(element.checked) === option.default ? undefined : element.checked;
  const text = element.value.trim();
  if (text === '' || text === option.default) return undefined;
  if (option.type === 'whole' || option.type === 'fraction') return Number(text);
  if ((option.type === 'switch' || option.type === 'flag') && (text === 'true' || text === 'false')) return text === 'true';
  return text.endsWith(':N') && counter ? `${text.slice(0, -1)}${counter.value || 1}` : text;
};

const setField = ({option, element, counter}, value) => {
  if (element.type === 'checkbox') {
    element.checked = value === undefined ? option.default === 'true' : value === true;
    return;
  }
  const text = value === undefined ? (element.tagName === 'SELECT' ? option.default : '') : String(value);
  element.value = text;
  if (!counter) return;
  const counted = /^(.*:)(\d+)$/.exec(text);
  if (counted && element.value !== text) {
    element.value = `${counted[1]}N`;
    counter.value = counted[2];
  }
  counter.hidden = !element.value.endsWith(':N');
};

// The fields that a fault names: as the library (`seq_length`, "seq_length"), the command line (--seq) or people (batch
// size) call them.
const namedIn = (text) => {
  const byFlag = new Map([...fields.values()].map((entry) => [entry.option.flag, entry]));
  const words = [...text.matchAll(/[`"]([a-z][a-z0-9_]*)[`"=]|--([a-z][a-z0-9-]*)|^([a-z][a-z0-9_]*)/g)];
  const named = words.map(([, name, flag, first]) => fields.get(name || first) || byFlag.get(flag || first)).filter(Boolean);
  const spoken = [...fields.values()].filter(({option: {name}}) => name.includes('_') && text.includes(name.replaceAll('_', ' ')));
  return new Set([...named, ...spoken]);
};
const clearFaults = () => {
  for (const note of document.querySelectorAll('.field-fault')) note.remove();
  for (const {element} of fields.values()) {
    element.removeAttribute('aria-invalid');
    element.setAttribute('aria-describedby', `${element.id}-help`);
  }
};
// Says a fault at the field that it names first, and marks the others. Returns that field's element.
const markFaults = (says, text) => {
  clearFaults();
  const [entry, ...others] = namedIn(text);
  if (!entry) return null;
  for (const one of [entry, ...others]) one.element.setAttribute('aria-invalid', 'true');
  const {element} = entry;
  const note = make('p', says, {class: 'field-fault', id: `${element.id}-fault`});
  element.closest('.field').append(note);
  element.setAttribute('aria-describedby', `${element.id}-help ${note.id}`);
  return element;
};

const readJob = () => {
  const job = {};
  for (const [name, entry] of fields) {
    const value = valueOf(entry);
    if (value !== undefined) job[name] = value;
  }
  return job;
};
const writeJob = (job) => {
  for (const [name, entry] of fields) setField(entry, job[name]);
};
// Numbers that the field does not take, such as 1.5 of a whole number: the library says why.
const PLAN = ['gpus', 'global_batch', 'gpus_per_node', 'network_gbps', 'framework'];
const readPlan = () => {
  const plan = {};
  for (const name of PLAN) {
    const text = at(`p-${name}`).value.trim();
    if (text !== '') plan[name] = name === 'framework' ? text : Number(text);
  }
  return plan;
};
const writePlan = (plan) => {
  for (const name of PLAN) at(`p-${name}`).value = plan[name] === undefined ? '' : plan[name];
};

const quoted = (text) => (/^[\w@%+=:,./*-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const commandOf = (model, job) => {
  const words = ['gpumem', 'estimate', quoted(model.name)];
  for (const [name, value] of Object.entries(job)) {
    const {option} = fields.get(name);
    if (value === true) words.push(`--${option.flag}`);
    else if (value === false) words.push(option.type === 'flag' ? `--no-${option.flag}` : `--${option.flag}=false`);
    else if (option.type === 'switch') words.push(`--${option.flag}=${quoted(value)}`);
    else words.push(`--${option.flag}`, quoted(String(value)));
  }
  return words.join(' ');
};
