import { expect, test } from 'vitest';
import { ran, task } from '../test/factories';
import { planFrom } from './resume';

test('what needs the task runs after it, and what is done is not done again', () => {
  const tasks = [
    task('thank', { dependsOn: ['ship'] }),
    task('ship', { dependsOn: ['pay', 'reserve'] }),
    ran('reserve', 0, 1),
    ran('aside', 0, 1),
    task('pay', { state: 'failed' }),
  ];
  expect(planFrom(tasks, 'pay')).toEqual({
    rerun: ['pay'],
    waiting: ['ship', 'thank'],
    held: [],
    reused: ['reserve'],
  });
});

test('what also needs something else that failed stays where it is', () => {
  const tasks = [
    task('pay', { state: 'failed' }),
    task('pack', { state: 'cancelled' }),
    task('bill', { dependsOn: ['pay'] }),
    task('ship', { dependsOn: ['pay', 'pack'] }),
    task('thank', { dependsOn: ['ship'] }),
  ];
  expect(planFrom(tasks, 'pay')).toMatchObject({ waiting: ['bill'], held: ['ship', 'thank'] });
});
