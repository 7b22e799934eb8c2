// The table of kinds for any number of keys, rate and need. Without it the table is that of the page's keys and rate.
(() => {
  const by = id => document.getElementById(id);
  const form = by('ask'), body = by('answer').tBodies[0], told = by('told');
  const needs = [...form.querySelectorAll('.need')];
  const list = (row, name) => row.dataset[name].split(',').map(text => text.trim()).map(text => text === '' ? NaN : Number(text));
  const rows = [...body.rows].map(row => ({
    row, name: row.cells[0].textContent, can: row.dataset.can.split(' '), core: row.classList.contains('core'),
    bits: list(row, 'bits'), fpr: list(row, 'fpr'), ns: row.dataset.ns === '' ? Infinity : Number(row.dataset.ns),
  }));

  // 1000000, 1_000_000, 1e6 and 10M, as the program reads them; NaN for anything else.
  const count = text => {
    const parts = /^([0-9][0-9_']*(?:\.[0-9]+)?(?:e[0-9]+)?)([kMGT]?)$/.exec(text.trim());
    if (!parts) return NaN;
    const units = { '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12 };
    return Math.round(Number(parts[1].replace(/[_']/g, '')) * units[parts[2]]);
  };
  const bytes = size => {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
    const power = Math.min(Math.floor(Math.log2(Math.max(size, 1)) / 10), units.length - 1);
    return (size / 1024 ** power).toFixed(power ? 1 : 0) + ' ' + units[power];
  };
  const rate = fpr => {
    const percent = 100 * fpr;
    if (percent >= 9.5) return percent.toFixed(0) + ' %';
    if (percent >= 0.00095) return Number(percent.toPrecision(2)) + ' %';
    return fpr.toExponential(0).replace('e+', 'e');
  };

  const answer = () => {
    const keys = count(by('keys').value), at = Number(by('rate').value);
    const asked = needs.filter(need => need.checked).map(need => need.value);
    const has = need => asked.includes(need);
    // All keys from the start does not go with keys that come.
    by('fixed').disabled = has('grow') || has('window');
    const fixed = by('fixed').checked && !by('fixed').disabled;
    const inserts = !(fixed || has('map')) || has('grow') || has('window');
    const wanted = inserts ? [...asked, 'insert'] : asked;
    const suits = kind => (by('all').checked || kind.core) && wanted.every(need => kind.can.includes(need))
      && kind.can.includes('window') === has('window') && !Number.isNaN(kind.bits[at]);
    const good = keys >= 1;
    const found = good ? rows.filter(suits) : [];
    const by_size = (a, b) => a.bits[at] - b.bits[at];
    const by_time = (a, b) => a.ns - b.ns || by_size(a, b);
    found.sort(by('order').value === 'time' ? by_time : by_size);
    rows.forEach(kind => { kind.row.hidden = true; });
    for (const kind of found) {
      const cells = kind.row.cells;
      cells[1].textContent = bytes(kind.bits[at] * keys / 8);
      cells[2].textContent = kind.bits[at].toFixed(2);
      cells[3].textContent = rate(kind.fpr[at]);
      kind.row.hidden = false;
      body.append(kind.row);
    }
    by('keys').setAttribute('aria-invalid', String(!good));
    if (!good) {
      told.textContent = 'How many keys? Such as 1000000, 1e6 or 10M.';
    } else if (found.length === 0) {
      told.textContent = 'No kind can do all of this; ask for less.';
    } else {
      const boxes = [by('fixed'), ...needs, by('all')].filter(box => box.checked && !box.disabled);
      const flags = boxes.map(box => ' ' + box.dataset.flag).join('');
      const fpr = by('rate').selectedOptions[0].dataset.fpr;
      const kinds = found.length === 1 ? 'One kind suits' : found.length + ' kinds suit';
      // A small filter has parts that do not grow with its keys.
      const page = Number(by('keys').dataset.page);
      const rough = 1e4 > page && keys > page ? ' Sizes are those of ' + page + ' keys multiplied, and may be far too large.' : '';
      told.textContent = kinds + '.' + rough + ' Ask every kind itself: tamis advise --keys ' + keys + ' --fpr ' + fpr + flags;
    }
  };
  form.addEventListener('input', answer);
  form.addEventListener('submit', event => event.preventDefault());
  form.hidden = false;
  answer();
})();
