// Reads a file of weights to replay: rows of weights, or of a step and weights.

const MOST_ROWS = 10000;

/** Rows of [step, weights...]; throws an Error with one clear sentence about a bad file. */
export function parseSequence(text, objectives) {
  const lines = text.split(/\r?\n/).map((line) => line.trim());
  const rows = [];
  let withSteps = null;
  lines.forEach((line, index) => {
    if (!line || line.startsWith('#')) return;
    const cells = line.split(/[,;\t]/).map((cell) => cell.trim());
    const values = cells.map(Number);
    if (cells.some((cell, i) => cell === '' || !Number.isFinite(values[i]))) {
      if (rows.length === 0 && cells.every((cell, i) => cell !== '' && Number.isNaN(values[i]))) return;
      throw new Error(`Line ${index + 1} is not a row of numbers.`);
    }
    if (values.length !== objectives && values.length !== objectives + 1) {
      throw new Error(
        `Line ${index + 1} has ${values.length} numbers; `
          + `${objectives} weights are needed, or a step and ${objectives} weights.`,
      );
    }
    const hasStep = values.length === objectives + 1;
    if (withSteps !== null && hasStep !== withSteps) {
      throw new Error(`Line ${index + 1} has another number of columns than the lines above it.`);
    }
    withSteps = hasStep;
    rows.push(checkedRow(hasStep ? values : [rows.length, ...values], rows.at(-1), index + 1));
    if (rows.length > MOST_ROWS) throw new Error(`The file has more than ${MOST_ROWS.toLocaleString('en')} rows.`);
  });
  if (rows.length === 0) throw new Error('The file has no rows of weights.');
  return rows;
}

function checkedRow([step, ...weights], before, line) {
  if (step < 0 || !Number.isInteger(step)) throw new Error(`The step of line ${line} is not a whole number from 0 on.`);
  if (before && step <= before[0]) throw new Error(`The step of line ${line} does not come after the one before it.`);
  if (weights.some((weight) => weight < 0)) throw new Error(`Line ${line} has a negative weight.`);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  if (Math.abs(sum - 1) > 1e-3) throw new Error(`The weights of line ${line} sum to ${sum.toFixed(3)}, not to 1.`);
  return [step, ...weights.map((weight) => weight / sum)];
}
