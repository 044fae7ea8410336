// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// CheckpointSound checks the Checkpoint of a reconcile function: it is given for an answer that asks for nothing,
// alone; handed back it gives the same answer until its deadline; and after any change of the Input the answer is that
// of a call without it. Each field is changed in turn, in several ways; a changed object has another resourceVersion.
// In has the fields Now and Checkpoint, Out embeds an olmcore.Result and has the field Checkpoint.
func CheckpointSound[In, Out any](reconcile func(In) (Out, error), in In) error {
	c := checkpointed[In, Out]{reconcile}
	in = withCheckpoint(in, nil)
	out, err := reconcile(in)
	if err != nil {
		return nil
	}
	result, checkpoint := c.read(out)
	if checkpoint == nil {
		return nil
	}
	if !result.Empty() {
		return fmt.Errorf("not checkpoint-sound: a Checkpoint for an answer that asks for something or says something:\n%s", Describe(result))
	}
	if again, _ := reconcile(withCheckpoint(in, checkpoint)); !answers.DeepEqual(withCheckpoint(again, nil), withCheckpoint(out, nil)) {
		return fmt.Errorf("not checkpoint-sound: with the Checkpoint it returned\n%+v\nnot\n%+v", again, out)
	}
	if err := c.time(in, checkpoint, result.RequeueAfter); err != nil {
		return err
	}
	var failed []error
	for _, v := range variants(reflect.ValueOf(in), 0) {
		failed = append(failed, c.same(v.value.Interface().(In), checkpoint, v.what))
	}
	return errors.Join(failed...)
}

// CheckpointCovers checks that no part of an Input is forgotten: in is at rest, and any change of it makes its
// Checkpoint let go, whether the answer changes or not. Except names what need not be noticed, as the beginning of what
// CheckpointSound would report of it ("Config: Kinds").
func CheckpointCovers[In, Out any](reconcile func(In) (Out, error), in In, except ...string) error {
	c := checkpointed[In, Out]{reconcile}
	out, err := reconcile(withCheckpoint(in, nil))
	if err != nil {
		return err
	}
	_, checkpoint := c.read(out)
	if checkpoint == nil {
		return errors.New("no Checkpoint is given for the Input")
	}
	var failed []error
	for _, v := range variants(reflect.ValueOf(in), 0) {
		if slices.ContainsFunc(except, func(e string) bool { return strings.HasPrefix(v.what, e) }) {
			continue
		}
		out, err := reconcile(withCheckpoint(v.value.Interface().(In), checkpoint))
		if _, now := c.read(out); err == nil && now == checkpoint {
			failed = append(failed, fmt.Errorf("not covered: the Checkpoint holds with another %s", v.what))
		}
	}
	return errors.Join(failed...)
}

// answers compares Outcomes: times that are the same instant are equal, and what is remembered of certificates is no
// answer.
var answers = func() conversion.Equalities {
	e := equality.Semantic.Copy()
	if err := e.AddFuncs(
		func(a, b time.Time) bool { return a.Equal(b) },
		func(_, _ *serving.Memory) bool { return true },
	); err != nil {
		panic(err)
	}
	return e
}()

type checkpointed[In, Out any] struct{ reconcile func(In) (Out, error) }

func (checkpointed[In, Out]) read(out Out) (result olmcore.Result, checkpoint *olmcore.Checkpoint) {
	v := reflect.ValueOf(out)
	return v.FieldByName("Result").Interface().(olmcore.Result), v.FieldByName("Checkpoint").Interface().(*olmcore.Checkpoint)
}

// same compares the answer with a Checkpoint with the one without.
func (c checkpointed[In, Out]) same(in In, checkpoint *olmcore.Checkpoint, what string) error {
	want, wantErr := c.reconcile(withCheckpoint(in, nil))
	got, gotErr := c.reconcile(withCheckpoint(in, checkpoint))
	if fmt.Sprint(wantErr) != fmt.Sprint(gotErr) {
		return fmt.Errorf("not checkpoint-sound: with another %s the error is %v, not %v", what, gotErr, wantErr)
	}
	if !answers.DeepEqual(withCheckpoint(got, nil), withCheckpoint(want, nil)) {
		w, _ := c.read(want)
		g, _ := c.read(got)
		return fmt.Errorf("not checkpoint-sound: with another %s it returned\n%s\nnot\n%s", what, Describe(g), Describe(w))
	}
	return nil
}

// time moves the clock: back, to the deadline and beyond it.
func (c checkpointed[In, Out]) time(in In, checkpoint *olmcore.Checkpoint, deadline time.Duration) error {
	now := nowOf(in)
	moves := []time.Duration{-time.Hour, -time.Nanosecond}
	if deadline > 0 {
		moves = append(moves, deadline, deadline+time.Hour)
	}
	for _, d := range moves {
		if moved, ok := at(in, now.Add(d)); ok {
			if err := c.same(moved, checkpoint, fmt.Sprintf("Now, %s later", d)); err != nil {
				return err
			}
		}
	}
	return nil
}

// withCheckpoint returns a copy of an Input or Outcome with its field Checkpoint set.
func withCheckpoint[T any](value T, checkpoint *olmcore.Checkpoint) T {
	reflect.ValueOf(&value).Elem().FieldByName("Checkpoint").Set(reflect.ValueOf(checkpoint))
	return value
}

// variant is a value with one thing changed.
type variant struct {
	what  string
	value reflect.Value
}

const maxDepth = 6 // of what is no object: answers hold answers

// variants returns copies of a value that differ from it in one place each. What did not change is shared.
func variants(v reflect.Value, depth int) []variant {
	zero := variant{"value that is not set", reflect.Zero(v.Type())}
	switch {
	case depth > maxDepth || !v.IsValid():
		return nil
	case v.Type() == timeType:
		later := variant{"time", reflect.ValueOf(v.Interface().(time.Time).Add(time.Hour))}
		if v.IsZero() {
			return []variant{later}
		}
		return []variant{zero, later}
	case v.Kind() == reflect.Interface && !v.IsNil():
		return append(recast(v.Type(), variants(v.Elem(), depth)), zero)
	case isObject(v):
		return append(objectVariants(v), zero)
	}
	switch v.Kind() {
	case reflect.Struct:
		return structVariants(v, depth)
	case reflect.Pointer:
		return pointerVariants(v, depth)
	case reflect.Slice:
		return sliceVariants(v, depth)
	case reflect.Map:
		return mapVariants(v, depth)
	}
	return scalarVariants(v)
}

func scalarVariants(v reflect.Value) []variant {
	next := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Bool:
		next.SetBool(!v.Bool())
	case reflect.String:
		next.SetString(v.String() + "x")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		next.SetInt(v.Int() + 1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		next.SetUint(v.Uint() + 1)
	case reflect.Float32, reflect.Float64:
		next.SetFloat(v.Float() + 0.125)
	default:
		return nil
	}
	return []variant{{"value", next}}
}

func structVariants(v reflect.Value, depth int) (all []variant) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || field.Name == "Now" || field.Name == "Checkpoint" {
			continue
		}
		for _, changed := range variants(v.Field(i), depth+1) {
			next := reflect.New(v.Type()).Elem()
			next.Set(v)
			next.Field(i).Set(changed.value)
			all = append(all, variant{field.Name + ": " + changed.what, next})
		}
	}
	return all
}

func pointerVariants(v reflect.Value, depth int) (all []variant) {
	if v.IsNil() {
		return []variant{{"value that is set", reflect.New(v.Type().Elem())}}
	}
	for _, changed := range variants(v.Elem(), depth+1) {
		next := reflect.New(v.Type().Elem())
		next.Elem().Set(changed.value)
		all = append(all, variant{changed.what, next})
	}
	return append(all, variant{"value that is not set", reflect.Zero(v.Type())})
}

func sliceVariants(v reflect.Value, depth int) (all []variant) {
	all = append(all, variant{"list with one more", reflect.Append(v.Slice3(0, v.Len(), v.Len()), reflect.Zero(v.Type().Elem()))})
	for i := range v.Len() {
		less := reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v.Slice(0, i))
		all = append(all, variant{fmt.Sprintf("list without entry %d", i), reflect.AppendSlice(less, v.Slice(i+1, v.Len()))})
		for _, changed := range variants(v.Index(i), depth+1) {
			next := reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v)
			next.Index(i).Set(changed.value)
			all = append(all, variant{fmt.Sprintf("entry %d: %s", i, changed.what), next})
		}
	}
	return all
}

func mapVariants(v reflect.Value, depth int) (all []variant) {
	put := func(what string, key, value reflect.Value) {
		next := reflect.MakeMap(v.Type())
		for _, k := range v.MapKeys() {
			next.SetMapIndex(k, v.MapIndex(k))
		}
		next.SetMapIndex(key, value)
		all = append(all, variant{what, next})
	}
	for _, key := range v.MapKeys() {
		put(fmt.Sprintf("map without %v", key), key, reflect.Value{})
		for _, changed := range variants(v.MapIndex(key), depth+1) {
			put(fmt.Sprintf("entry %v: %s", key, changed.what), key, changed.value)
		}
	}
	put("map with one more", reflect.New(v.Type().Key()).Elem(), reflect.Zero(v.Type().Elem()))
	return all
}

func isObject(v reflect.Value) bool {
	return v.Kind() == reflect.Pointer && !v.IsNil() && v.Type().Implements(reflect.TypeFor[olmcore.Object]())
}

// objectVariants returns other versions of an object: without one of its parts, without its labels, annotations, owners
// or finalizers, being deleted, and created anew.
func objectVariants(v reflect.Value) (all []variant) {
	change := func(what string, apply func(o olmcore.Object)) {
		o := v.Interface().(olmcore.Object).DeepCopyObject().(olmcore.Object)
		apply(o)
		o.SetResourceVersion(o.GetResourceVersion() + "1")
		all = append(all, variant{what, reflect.ValueOf(o)})
	}
	fields := v.Type().Elem()
	for i := range fields.NumField() {
		field := fields.Field(i)
		if field.Anonymous || !field.IsExported() || v.Elem().Field(i).IsZero() {
			continue // its type and metadata
		}
		change("object without "+field.Name, func(o olmcore.Object) { reflect.ValueOf(o).Elem().Field(i).SetZero() })
	}
	change("object without labels", func(o olmcore.Object) { o.SetLabels(nil) })
	change("object without annotations", func(o olmcore.Object) { o.SetAnnotations(nil) })
	change("object without owners", func(o olmcore.Object) { o.SetOwnerReferences(nil) })
	change("object without finalizers", func(o olmcore.Object) { o.SetFinalizers(nil) })
	change("object that is being deleted", func(o olmcore.Object) { o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)}) })
	change("object created anew", func(o olmcore.Object) { o.SetUID(o.GetUID() + types.UID("1")) })
	return all
}

func recast(to reflect.Type, all []variant) []variant {
	for i, v := range all {
		next := reflect.New(to).Elem()
		next.Set(v.value)
		all[i].value = next
	}
	return all
}
