// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// Func is a reconcile function, or one wrapped so that it returns its Result
// alone. In is a struct with a field Now of type time.Time.
type Func[In any] func(In) (olmcore.Result, error)

// Laws checks every law that one input can show: Deterministic, Pure, DeadlineSound, ShiftInvariant, Separate and
// Recordable. The errors of the laws that do not hold are joined; nil means that all hold. An input that f refuses must
// be refused every time.
func Laws[In any](f Func[In], in In) error {
	t := newTrial(f, in)
	err := errors.Join(t.deterministic(), t.pure(), t.deadlineSound(), t.shiftInvariant())
	if t.err != nil {
		return err
	}
	return errors.Join(err, Separate(t.result), Recordable(t.result))
}

// trial contains one call of f and its result, which all laws share.
type trial[In any] struct {
	f      Func[In]
	in     In // never passed to f
	given  In // what was handed to f
	result olmcore.Result
	err    error
	copied olmcore.Result // a copy of the result, made before f was called again

	// shifted is what f returned for the input of another time; nil before it was called.
	shifted *olmcore.Result
	// shiftedErr is the error of that call.
	shiftedErr error
}

func newTrial[In any](f Func[In], in In) *trial[In] {
	t := &trial[In]{f: f, in: in, given: Clone(in)}
	t.result, t.err = f(t.given)
	t.copied = Clone(t.result)
	return t
}

// shiftedBy is how far all times of the input are moved.
const shiftedBy = 1234 * time.Hour

// shift returns what f returns when all times of the input are moved.
func (t *trial[In]) shift() (olmcore.Result, error) {
	if t.shifted == nil {
		result, err := t.f(Shift(t.in, shiftedBy))
		t.shifted, t.shiftedErr = &result, err
	}
	return *t.shifted, t.shiftedErr
}

// Deterministic checks that f returns the same when called again, and when the slices of its input come in another
// order.
func Deterministic[In any](f Func[In], in In) error { return newTrial(f, in).deterministic() }

func (t *trial[In]) deterministic() error {
	for seed := range uint64(3) {
		again, what := Clone(t.in), "called again"
		if seed > 0 {
			again, what = Shuffle(t.in, seed), "with its input shuffled"
		}
		second, secondErr := t.f(again)
		if (t.err == nil) != (secondErr == nil) {
			return fmt.Errorf("not deterministic: %s it returned error %v, not %v", what, secondErr, t.err)
		}
		if t.err == nil && !equality.Semantic.DeepEqual(t.copied, second) {
			return fmt.Errorf("not deterministic: %s it returned\n%s\nnot\n%s", what, Describe(second), Describe(t.copied))
		}
	}
	return nil
}

// Pure checks that f leaves its input as it was, and that what it returned stays
// as it is when f is called for another time.
func Pure[In any](f Func[In], in In) error { return newTrial(f, in).pure() }

func (t *trial[In]) pure() error {
	if t.err != nil && !errors.Is(t.err, olmcore.ErrInvalidInput) {
		return fmt.Errorf("not pure: an error that is no breach of contract: %w", t.err)
	}
	if !reflect.DeepEqual(t.in, t.given) {
		return fmt.Errorf("not pure: the input was changed%s", firstDifference(reflect.ValueOf(t.in), reflect.ValueOf(t.given), ""))
	}
	if _, err := t.shift(); err == nil && !equality.Semantic.DeepEqual(t.copied, t.result) {
		return fmt.Errorf("not pure: what a call returned was changed by the next:\n%s\nnot\n%s", Describe(t.result), Describe(t.copied))
	}
	return nil
}

// DeadlineSound checks that a result that asks for nothing holds until its
// deadline: with RequeueAfter d at every instant before Now+d, for ever when d is 0.
func DeadlineSound[In any](f Func[In], in In) error { return newTrial(f, in).deadlineSound() }

func (t *trial[In]) deadlineSound() error {
	if t.err != nil || len(t.copied.Actions) > 0 {
		return nil
	}
	now, until := nowOf(t.in), t.copied.RequeueAfter
	instants := []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, 1000 * 24 * time.Hour}
	if until > 0 {
		instants = []time.Duration{time.Nanosecond, until / 3, until / 2, until - time.Second, until - time.Nanosecond}
	}
	for _, d := range instants {
		if d <= 0 || until > 0 && d >= until {
			continue
		}
		later, ok := at(Clone(t.in), now.Add(d))
		if !ok {
			return fmt.Errorf("not deadline-sound: %T has no field Now", t.in)
		}
		got, err := t.f(later)
		if err != nil || len(got.Actions) > 0 {
			return fmt.Errorf("not deadline-sound: nothing to do with requeue after %s, but %s later: %v\n%s", until, d, err, Describe(got))
		}
	}
	return nil
}

// ShiftInvariant checks that moving all times of the input equally moves all times of the result, and changes nothing
// else.
func ShiftInvariant[In any](f Func[In], in In) error { return newTrial(f, in).shiftInvariant() }

func (t *trial[In]) shiftInvariant() error {
	if t.err != nil {
		return nil
	}
	got, err := t.shift()
	if err != nil {
		return fmt.Errorf("not shift-invariant: %w", err)
	}
	if want := Shift(t.copied, shiftedBy); !equality.Semantic.DeepEqual(want, got) {
		return fmt.Errorf("not shift-invariant: moved by %s it returned\n%s\nnot\n%s", shiftedBy, Describe(got), Describe(want))
	}
	return nil
}

// Separate checks that a result has at most one action for each object, and that each action has a target and a reason.
// Every action except Create also needs the UID and the resourceVersion that were observed: what an object says may
// change between the read and the write, and a Delete cannot be undone.
func Separate(result olmcore.Result) error {
	seen := map[olmcore.Key]olmcore.Verb{}
	for _, a := range result.Actions {
		verb, target, cause := a.Describe()
		if other, twice := seen[target.Key()]; twice {
			return fmt.Errorf("not separate: %s and %s of %s in one result", other, verb, target)
		}
		seen[target.Key()] = verb
		switch {
		case target.APIVersion == "" || target.Kind == "" || target.Name == "":
			return fmt.Errorf("not separate: %s without a complete target: %+v", verb, target)
		case cause.Reason == "":
			return fmt.Errorf("not separate: %s of %s without a reason", verb, target)
		case verb != olmcore.VerbCreate && target.UID == "":
			return fmt.Errorf("not separate: %s of %s without a UID", verb, target)
		case verb != olmcore.VerbCreate && target.ResourceVersion == "":
			return fmt.Errorf("not separate: %s of %s without a resourceVersion", verb, target)
		}
	}
	return nil
}

// Recordable checks that every action survives the way through JSON and back.
func Recordable(result olmcore.Result) error {
	for _, a := range result.Actions {
		if err := recordable(a); err != nil {
			return fmt.Errorf("not recordable: %w", err)
		}
	}
	return nil
}

func recordable(a olmcore.Action) error {
	record, err := olmcore.RecordOf(a)
	if err != nil {
		return err
	}
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	var decoded olmcore.Record
	if err := json.Unmarshal(data, &decoded); err != nil {
		return err
	}
	back, err := decode.Action(decoded, beforeOf(a))
	if err != nil {
		return err
	}
	again, err := olmcore.RecordOf(back)
	if err != nil {
		return err
	}
	repeated, err := json.Marshal(again)
	if err != nil || bytes.Equal(data, repeated) {
		return err
	}
	// One value has several spellings: an invalid byte becomes an escape at first and a character the second time.
	var want, got any
	if err := errors.Join(json.Unmarshal(data, &want), json.Unmarshal(repeated, &got)); err != nil {
		return err
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Errorf("%s\nbecame\n%s", data, repeated)
	}
	return nil
}

func beforeOf(a olmcore.Action) olmcore.Object {
	switch a := a.(type) {
	case olmcore.Update:
		return a.Before
	case olmcore.UpdateStatus:
		return a.Before
	}
	return nil
}
