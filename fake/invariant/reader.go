// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// CheckReader checks a Reader against what the gatherers expect of one. newReader is called once: it makes objects
// exist in a cluster that has none of them, in their order, and returns a Reader that sees them. Other objects may be
// there; those of the check are in namespaces, or have names, that begin with "check-reader". They are not removed. The
// error names the first expectation that does not hold.
func CheckReader(ctx context.Context, newReader func(ctx context.Context, objects []olmcore.Object) (olmcore.Reader, error)) error {
	r, err := newReader(ctx, readObjects())
	if err != nil {
		return err
	}
	c := &readerCheck{ctx: ctx, r: r}
	for _, step := range []struct {
		what  string
		check func() error
	}{
		{"an object that is there is found, as its API type and whole", c.found},
		{"an object that is absent is NotFound", c.absent},
		{"a list holds what the namespace and the selector ask for, and nothing else", c.lists},
		{"a list is sorted by namespace and name", c.sorted},
		{"a kind that is not served has no objects", c.unserved},
		{"a read that is cut short is an error, never a shorter list", c.cancelled},
		{"reading changes nothing", c.found},
	} {
		if err := step.check(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// CheckBrokenReader checks that a Reader whose cluster does not answer says so:
// each read is an error, and none that says that something does not exist.
func CheckBrokenReader(ctx context.Context, r olmcore.Reader) error {
	for _, q := range readQuestions {
		if list, err := r.List(ctx, q.gvk, q.namespace, nil); err == nil || olmcore.Classify(err) == olmcore.Gone {
			return fmt.Errorf("a list of %s that was not answered has %d objects and the error %w", q.gvk.Kind, len(list), orNone(err))
		}
		if _, err := r.Get(ctx, q.gvk, q.namespace, "check-reader"); err == nil || apierrors.IsNotFound(err) {
			return fmt.Errorf("a read of a %s that was not answered has the error %w", q.gvk.Kind, orNone(err))
		}
	}
	return nil
}

func orNone(err error) error {
	if err == nil {
		return errors.New("none")
	}
	return err
}

const (
	readA = "check-reader-a"
	readB = "check-reader-b"
)

var (
	readSubscription  = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.SubscriptionKind)
	readCatalogSource = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.CatalogSourceKind)
	readClusterRole   = rbacv1.SchemeGroupVersion.WithKind("ClusterRole")
	readLease         = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}
	readPriority      = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}
)

// readObjects are the objects of the check: kinds with and without a Go type, in namespaces and without.
func readObjects() []olmcore.Object {
	subscription := func(namespace, name string, labels map[string]string) olmcore.Object {
		return &v1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: map[string]string{"check": name}},
			Spec:       &v1alpha1.SubscriptionSpec{Package: name, Channel: "c", CatalogSource: "s", CatalogSourceNamespace: namespace},
		}
	}
	untyped := func(gvk schema.GroupVersionKind, namespace, name string, labels map[string]any, content map[string]any) olmcore.Object {
		metadata := map[string]any{"name": name, "labels": labels}
		if namespace != "" {
			metadata["namespace"] = namespace
		}
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
		maps.Copy(u.Object, content)
		u.SetGroupVersionKind(gvk)
		return u
	}
	return []olmcore.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: readB}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: readA, Labels: map[string]string{"check-reader": "yes"}}},
		subscription(readB, "one", map[string]string{"app": "x", "check-reader/tier": "front"}),
		subscription(readA, "two", map[string]string{"app": "x", "check-reader/tier": "back"}),
		subscription(readA, "three", nil),
		subscription(readA, "one", map[string]string{"app": "y", "check-reader/tier": "front"}),
		// The decoder of the API type panics on an empty update strategy.
		&v1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: readA, Name: "empty-strategy", Labels: map[string]string{"app": "x"}},
			Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "i", UpdateStrategy: &v1alpha1.UpdateStrategy{}},
		},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "check-reader", Labels: map[string]string{"app": "x"}},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
		},
		untyped(
			readLease,
			readA,
			"one",
			map[string]any{"app": "x"},
			map[string]any{"spec": map[string]any{"holderIdentity": "h", "leaseDurationSeconds": int64(15)}},
		),
		untyped(readLease, readB, "one", map[string]any{}, map[string]any{"spec": map[string]any{"holderIdentity": "h"}}),
		untyped(readPriority, "", "check-reader", map[string]any{"app": "x"}, map[string]any{"value": int64(1000), "description": "d"}),
	}
}

// readQuestions are lists and what they hold of the objects above.
var readQuestions = []struct {
	gvk       schema.GroupVersionKind
	namespace string
	selector  string
	want      []string
}{
	{readSubscription, "", "", []string{readA + "/one", readA + "/three", readA + "/two", readB + "/one"}},
	{readSubscription, readA, "", []string{readA + "/one", readA + "/three", readA + "/two"}},
	{readSubscription, "check-reader-none", "", nil},
	{readSubscription, "", "app=x", []string{readA + "/two", readB + "/one"}},
	{readSubscription, readA, "app=x", []string{readA + "/two"}},
	{readSubscription, readA, "app=z", nil},
	{readSubscription, "", "check-reader/tier", []string{readA + "/one", readA + "/two", readB + "/one"}},
	{readSubscription, "", "check-reader/tier=front,app=x", []string{readB + "/one"}},
	{readSubscription, readA, "app in (x,y)", []string{readA + "/one", readA + "/two"}},
	{readSubscription, readA, "app notin (x)", []string{readA + "/one", readA + "/three"}},
	{readSubscription, readA, "!app", []string{readA + "/three"}},
	{readSubscription, readA, "app!=x,check-reader/tier", []string{readA + "/one"}},
	{readCatalogSource, readA, "", []string{readA + "/empty-strategy"}},
	{readCatalogSource, "", "app=x", []string{readA + "/empty-strategy"}},
	{readCatalogSource, readA, "app=y", nil},
	{corev1.SchemeGroupVersion.WithKind("Namespace"), "", "check-reader=yes", []string{"/" + readA}},
	{readClusterRole, "", "", []string{"/check-reader"}},
	{readClusterRole, "", "app=x", []string{"/check-reader"}},
	{readClusterRole, "", "app=y", nil},
	{readLease, readB, "", []string{readB + "/one"}},
	{readLease, "", "app", []string{readA + "/one"}},
	{readPriority, "", "", []string{"/check-reader"}},
	{readPriority, "", "app=x", []string{"/check-reader"}},
}

type readerCheck struct {
	ctx context.Context
	r   olmcore.Reader
}

func (c *readerCheck) found() error {
	for _, want := range readObjects() {
		gvk := olmcore.GVKOf(want)
		got, err := c.r.Get(c.ctx, gvk, want.GetNamespace(), want.GetName())
		if err != nil {
			return fmt.Errorf("%s: %w", olmcore.KeyOf(want), err)
		}
		if err := sameObject(got, want); err != nil {
			return fmt.Errorf("%s: %w", olmcore.KeyOf(want), err)
		}
	}
	return nil
}

// sameObject reports an error unless got is of want's type and holds all that
// want says; an API server may have filled in more.
func sameObject(got, want olmcore.Object) error {
	if reflect.TypeOf(got) != reflect.TypeOf(want) {
		return fmt.Errorf("it is a %T, not a %T", got, want)
	}
	if g, w := olmcore.GVKOf(got), olmcore.GVKOf(want); g != w {
		return fmt.Errorf("it is a %s, not a %s", g, w)
	}
	g, err := olmcore.ToMap(got)
	if err != nil {
		return err
	}
	w, err := olmcore.ToMap(want)
	if err != nil {
		return err
	}
	if path := missing(g, w); path != "" {
		return fmt.Errorf("%s is not what was written", path)
	}
	return nil
}

// missing returns the path of a field that got does not have as want says.
func missing(got, want map[string]any) string {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		w, isMap := want[key].(map[string]any)
		g, alsoMap := got[key].(map[string]any)
		switch {
		case isMap && len(w) == 0: // what is empty may be left out
		case isMap && alsoMap:
			if path := missing(g, w); path != "" {
				return key + "." + path
			}
		case !reflect.DeepEqual(got[key], want[key]):
			return key
		}
	}
	return ""
}

func (c *readerCheck) absent() error {
	for _, q := range readQuestions {
		namespace := q.namespace
		if namespace == "" && (q.gvk == readSubscription || q.gvk == readLease) {
			namespace = readA
		}
		got, err := c.r.Get(c.ctx, q.gvk, namespace, "check-reader-none")
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("a %s that does not exist is %T with the error %w", q.gvk.Kind, got, orNone(err))
		}
	}
	if _, err := c.r.Get(c.ctx, readSubscription, readB, "two"); !apierrors.IsNotFound(err) {
		return fmt.Errorf("a Subscription of another namespace has the error %w", orNone(err))
	}
	s, err := olmcore.Get[*v1alpha1.Subscription](c.ctx, c.r, readB, "two")
	if err != nil || s != nil {
		return fmt.Errorf("olmcore.Get returns %v with the error %w", s, orNone(err))
	}
	return nil
}

func (c *readerCheck) list(ctx context.Context, gvk schema.GroupVersionKind, namespace, selector string) ([]string, error) {
	var parsed labels.Selector
	if selector != "" {
		var err error
		if parsed, err = labels.Parse(selector); err != nil {
			return nil, err
		}
	}
	objects, err := c.r.List(ctx, gvk, namespace, parsed)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, o := range objects {
		if got := olmcore.GVKOf(o); got != gvk {
			return nil, fmt.Errorf("it holds a %s", got)
		}
		if want := reflect.TypeOf(olmcore.NewObject(gvk)); reflect.TypeOf(o) != want {
			return nil, fmt.Errorf("it holds a %T, not a %s", o, want)
		}
		if strings.HasPrefix(o.GetNamespace(), "check-reader") || strings.HasPrefix(o.GetName(), "check-reader") {
			keys = append(keys, o.GetNamespace()+"/"+o.GetName())
		}
	}
	return keys, nil
}

func (c *readerCheck) lists() error {
	for _, q := range readQuestions {
		got, err := c.list(c.ctx, q.gvk, q.namespace, q.selector)
		if err != nil {
			return fmt.Errorf("%s in %q with %q: %w", q.gvk.Kind, q.namespace, q.selector, err)
		}
		slices.Sort(got)
		if !slices.Equal(got, q.want) {
			return fmt.Errorf("%s in %q with %q: got %q, want %q", q.gvk.Kind, q.namespace, q.selector, got, q.want)
		}
	}
	everything, err := c.r.List(c.ctx, readSubscription, readA, labels.Everything())
	if err != nil || len(everything) != 3 {
		return fmt.Errorf("a selector that takes everything gives %d of 3 objects and the error %w", len(everything), orNone(err))
	}
	nothing, err := c.r.List(c.ctx, readSubscription, readA, labels.Nothing())
	if err != nil || len(nothing) != 0 {
		return fmt.Errorf("a selector that takes nothing gives %d objects and the error %w", len(nothing), orNone(err))
	}
	return nil
}

func (c *readerCheck) sorted() error {
	for _, q := range readQuestions {
		got, err := c.list(c.ctx, q.gvk, q.namespace, q.selector)
		if err != nil {
			return err
		}
		if !slices.Equal(got, q.want) {
			return fmt.Errorf("%s: %q", q.gvk.Kind, got)
		}
	}
	return nil
}

// unserved: the error may say that the kind, or that the object, is unknown; a
// Reader that does not know which kinds there are finds nothing.
func (c *readerCheck) unserved() error {
	gvk := schema.GroupVersionKind{Group: "check-reader.example.com", Version: "v1", Kind: "CheckReader"}
	if objects, err := c.r.List(c.ctx, gvk, "", nil); len(objects) > 0 || err != nil && olmcore.Classify(err) != olmcore.NoMatch {
		return fmt.Errorf("the list has %d objects and the error %w", len(objects), orNone(err))
	}
	_, err := c.r.Get(c.ctx, gvk, readA, "one")
	if class := olmcore.Classify(err); class != olmcore.NoMatch && class != olmcore.Gone {
		return fmt.Errorf("the object has the error %w", orNone(err))
	}
	return nil
}

func (c *readerCheck) cancelled() error {
	ctx, cancel := context.WithCancel(c.ctx)
	cancel()
	for _, q := range readQuestions {
		got, err := c.list(ctx, q.gvk, q.namespace, q.selector)
		if err == nil && !slices.Equal(got, q.want) {
			return fmt.Errorf("%s: got %q, want %q or an error", q.gvk.Kind, got, q.want)
		}
	}
	if _, err := c.r.Get(ctx, readSubscription, readA, "one"); apierrors.IsNotFound(err) {
		return fmt.Errorf("an object that exists has the error %w", err)
	}
	return nil
}
