// SPDX-License-Identifier: Apache-2.0

package invariant_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// clusterWith makes a cluster with objects.
func clusterWith(objects []olmcore.Object) (*fake.Cluster, error) {
	c := fake.NewCluster(noon)
	return c, c.Create(objects...)
}

func TestReadersOfTheLibraryKeepTheContract(t *testing.T) {
	for name, newReader := range map[string]func(context.Context, []olmcore.Object) (olmcore.Reader, error){
		"the fake cluster": func(_ context.Context, objects []olmcore.Object) (olmcore.Reader, error) {
			return clusterWith(objects)
		},
		"a view that was there before": func(_ context.Context, objects []olmcore.Object) (olmcore.Reader, error) {
			c := fake.NewCluster(noon)
			view := c.View("v")
			err := c.Create(objects...)
			view.Sync()
			return view, err
		},
		"a view that starts late": func(_ context.Context, objects []olmcore.Object) (olmcore.Reader, error) {
			c, err := clusterWith(objects)
			return c.View("v"), err
		},
		"a snapshot of objects": func(_ context.Context, objects []olmcore.Object) (olmcore.Reader, error) {
			return olmcore.NewSnapshot(objects, olmcore.Everything)
		},
		"a snapshot of the cluster": func(_ context.Context, objects []olmcore.Object) (olmcore.Reader, error) {
			c, err := clusterWith(objects)
			if err != nil {
				return nil, err
			}
			return c.Snapshot()
		},
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, invariant.CheckReader(t.Context(), newReader)) })
	}
}

// reader is a Reader with one habit of its own.
type reader struct {
	olmcore.Reader
	get  func(context.Context, olmcore.Object, error) (olmcore.Object, error)
	list func(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error)
}

func (r reader) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	o, err := r.Reader.Get(ctx, gvk, namespace, name)
	if r.get == nil {
		return o, err
	}
	return r.get(ctx, o, err)
}

func (r reader) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if r.list == nil {
		return r.Reader.List(ctx, gvk, namespace, selector)
	}
	return r.list(ctx, gvk, namespace, selector)
}

func TestCheckReaderCatchesWhoBreaksTheContract(t *testing.T) {
	type habit func(*reader)
	mapped := func(change func([]olmcore.Object) []olmcore.Object) habit {
		return func(r *reader) {
			r.list = func(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
				objects, err := r.Reader.List(ctx, gvk, namespace, selector)
				return change(slices.Clone(objects)), err
			}
		}
	}
	untyped := func(o olmcore.Object) olmcore.Object {
		m, err := olmcore.ToMap(o)
		require.NoError(t, err)
		return &unstructured.Unstructured{Object: m}
	}
	for name, tt := range map[string]struct {
		habit habit
		want  string
	}{
		"nil instead of NotFound": {func(r *reader) {
			r.get = func(_ context.Context, o olmcore.Object, _ error) (olmcore.Object, error) { return o, nil }
		}, "an object that is absent is NotFound"},
		"any error instead of NotFound": {func(r *reader) {
			r.get = func(_ context.Context, o olmcore.Object, err error) (olmcore.Object, error) {
				if err != nil {
					err = errors.New("no such object")
				}
				return o, err
			}
		}, "an object that is absent is NotFound"},
		"metadata alone": {func(r *reader) {
			r.get = func(_ context.Context, o olmcore.Object, err error) (olmcore.Object, error) {
				if s, ok := o.(*v1alpha1.Subscription); ok {
					return &v1alpha1.Subscription{ObjectMeta: s.ObjectMeta}, err
				}
				return o, err
			}
		}, "an object that is there is found, as its API type and whole"},
		"maps where there is a Go type": {func(r *reader) {
			r.get = func(_ context.Context, o olmcore.Object, err error) (olmcore.Object, error) {
				if err != nil {
					return nil, err
				}
				return untyped(o), nil
			}
		}, "an object that is there is found, as its API type and whole"},
		"maps in lists where there is a Go type": {mapped(func(objects []olmcore.Object) []olmcore.Object {
			for i, o := range objects {
				objects[i] = untyped(o)
			}
			return objects
		}), "a list holds what"},
		"no namespaces": {func(r *reader) {
			r.list = func(ctx context.Context, gvk schema.GroupVersionKind, _ string, selector labels.Selector) ([]olmcore.Object, error) {
				return r.Reader.List(ctx, gvk, "", selector)
			}
		}, "a list holds what"},
		"no selectors": {func(r *reader) {
			r.list = func(ctx context.Context, gvk schema.GroupVersionKind, namespace string, _ labels.Selector) ([]olmcore.Object, error) {
				return r.Reader.List(ctx, gvk, namespace, nil)
			}
		}, "a list holds what"},
		"selectors of one requirement": {func(r *reader) {
			r.list = func(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
				if selector != nil {
					if requirements, _ := selector.Requirements(); len(requirements) > 1 {
						selector = labels.NewSelector().Add(requirements[0])
					}
				}
				return r.Reader.List(ctx, gvk, namespace, selector)
			}
		}, "a list holds what"},
		"a first page":       {mapped(func(objects []olmcore.Object) []olmcore.Object { return objects[:min(len(objects), 2)] }), "a list holds what"},
		"the order of a map": {mapped(func(objects []olmcore.Object) []olmcore.Object { slices.Reverse(objects); return objects }), "a list is sorted"},
		"an answer for kinds that do not exist": {func(r *reader) {
			r.get = func(_ context.Context, o olmcore.Object, err error) (olmcore.Object, error) {
				if olmcore.Classify(err) == olmcore.NoMatch {
					return nil, nil
				}
				return o, err
			}
		}, "a kind that is not served"},
		"an error of any kind for kinds that do not exist": {func(r *reader) {
			r.list = func(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
				objects, err := r.Reader.List(ctx, gvk, namespace, selector)
				if err != nil {
					err = errors.New("the server said no")
				}
				return objects, err
			}
		}, "a kind that is not served"},
		"nothing when there is no time": {func(r *reader) {
			r.list = func(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
				if ctx.Err() != nil {
					return nil, nil
				}
				return r.Reader.List(ctx, gvk, namespace, selector)
			}
		}, "a read that is cut short is an error"},
		"NotFound when there is no time": {func(r *reader) {
			r.get = func(ctx context.Context, o olmcore.Object, err error) (olmcore.Object, error) {
				if ctx.Err() != nil {
					return nil, apierrors.NewNotFound(schema.GroupResource{}, "x")
				}
				return o, err
			}
		}, "a read that is cut short is an error"},
		"objects that wear off": {func(r *reader) {
			worn := false
			r.get = func(ctx context.Context, o olmcore.Object, err error) (olmcore.Object, error) {
				if worn && o != nil {
					o = o.DeepCopyObject().(olmcore.Object)
					o.SetLabels(nil)
				}
				worn = worn || ctx.Err() != nil // the last but one expectation
				return o, err
			}
		}, "reading changes nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			err := invariant.CheckReader(t.Context(), func(_ context.Context, objects []olmcore.Object) (olmcore.Reader, error) {
				c, err := clusterWith(objects)
				r := reader{Reader: c}
				tt.habit(&r)
				return &r, err
			})
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestCheckReaderPassesOnWhyThereIsNoReader(t *testing.T) {
	broken := errors.New("broken")
	require.ErrorIs(t, invariant.CheckReader(t.Context(), func(context.Context, []olmcore.Object) (olmcore.Reader, error) { return nil, broken }), broken)
}

func TestCheckBrokenReader(t *testing.T) {
	answers := func(list, get error) olmcore.Reader {
		return &reader{
			Reader: fake.NewCluster(noon),
			get:    func(context.Context, olmcore.Object, error) (olmcore.Object, error) { return nil, get },
			list: func(context.Context, schema.GroupVersionKind, string, labels.Selector) ([]olmcore.Object, error) {
				return nil, list
			},
		}
	}
	down := errors.New("connection refused")
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p")
	require.NoError(t, invariant.CheckBrokenReader(t.Context(), answers(down, down)))
	require.NoError(t, invariant.CheckBrokenReader(t.Context(), answers(apierrors.NewInternalError(down), down)))
	require.Error(t, invariant.CheckBrokenReader(t.Context(), answers(nil, down)))
	require.Error(t, invariant.CheckBrokenReader(t.Context(), answers(down, nil)))
	require.Error(t, invariant.CheckBrokenReader(t.Context(), answers(down, gone)))
	require.Error(t, invariant.CheckBrokenReader(t.Context(), answers(gone, down)))
	require.Error(t, invariant.CheckBrokenReader(t.Context(), &reader{Reader: fake.NewCluster(noon)}), "an empty cluster answers")
}
