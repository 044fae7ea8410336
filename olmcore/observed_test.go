// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/olmcore"
)

var (
	deployments = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	podGroup    = schema.GroupKind{Kind: "Pod"}
	widgets     = schema.GroupKind{Group: "a.b", Kind: "Widget"}
)

func TestASnapshotKnowsWhatWasRead(t *testing.T) {
	for name, tt := range map[string]struct {
		scopes []olmcore.Scope
		// held are the namespaces of each kind that were read.
		held    map[schema.GroupKind][]string
		notHeld map[schema.GroupKind][]string
	}{
		"kinds that occur": {
			held:    map[schema.GroupKind][]string{podGroup: {"", "ns", "other"}},
			notHeld: map[schema.GroupKind][]string{deployments: {"", "ns"}, widgets: {"", "ns"}},
		},
		"a kind of which there is nothing": {
			scopes:  []olmcore.Scope{{Kind: deployments}},
			held:    map[schema.GroupKind][]string{podGroup: {"", "ns", "other"}, deployments: {"", "ns"}},
			notHeld: map[schema.GroupKind][]string{widgets: {"", "ns"}},
		},
		"some namespaces": {
			scopes:  []olmcore.Scope{{Kind: deployments, Namespace: "a"}, {Kind: deployments, Namespace: "b"}},
			held:    map[schema.GroupKind][]string{podGroup: {"", "ns"}, deployments: {"a", "b"}},
			notHeld: map[schema.GroupKind][]string{deployments: {"", "c"}},
		},
		"some namespaces of a kind that occurs": {
			scopes:  []olmcore.Scope{{Kind: podGroup, Namespace: "ns"}},
			held:    map[schema.GroupKind][]string{podGroup: {"ns"}},
			notHeld: map[schema.GroupKind][]string{podGroup: {"", "other"}},
		},
		"all namespaces after some": {
			scopes: []olmcore.Scope{{Kind: podGroup, Namespace: "ns"}, {Kind: podGroup}, {Kind: podGroup, Namespace: "ns"}},
			held:   map[schema.GroupKind][]string{podGroup: {"", "ns", "other"}},
		},
		"everything": {
			scopes: []olmcore.Scope{olmcore.Everything},
			held:   map[schema.GroupKind][]string{podGroup: {"", "ns"}, deployments: {"", "ns"}, widgets: {"", "ns"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := olmcore.NewSnapshot([]olmcore.Object{pod("a")}, tt.scopes...)
			require.NoError(t, err)
			again, err := olmcore.NewSnapshot(nil, s.Scopes()...)
			require.NoError(t, err)
			for _, s := range []*olmcore.Snapshot{s, again} {
				checkHeld(t, s, tt.held, true)
				checkHeld(t, s, tt.notHeld, false)
			}
			found, err := s.Get(t.Context(), podKind, "ns", "a")
			require.NoError(t, err, "what it holds is there whatever was read")
			require.Equal(t, "a", found.GetName())
		})
	}
}

func checkHeld(t *testing.T, s *olmcore.Snapshot, kinds map[schema.GroupKind][]string, held bool) {
	t.Helper()
	for kind, namespaces := range kinds {
		for _, namespace := range namespaces {
			require.Equal(t, held, s.Holds(kind, namespace), "%s in %q", kind, namespace)
			_, getErr := s.Get(t.Context(), kind.WithVersion("v1"), namespace, "absent")
			_, listErr := s.List(t.Context(), kind.WithVersion("v1"), namespace, nil)
			if held {
				require.True(t, apierrors.IsNotFound(getErr))
				require.NoError(t, listErr)
				continue
			}
			for _, err := range []error{getErr, listErr} {
				require.ErrorIs(t, err, olmcore.ErrNotRead)
				var notRead *olmcore.NotReadError
				require.True(t, errors.As(err, &notRead))
				require.Empty(t, cmp.Diff(&olmcore.NotReadError{Kind: kind.WithVersion("v1"), Namespace: namespace}, notRead))
				require.False(t, apierrors.IsNotFound(err))
			}
		}
	}
}

// TestASnapshotKnowsWhatIsNotServed where it holds the definitions of all kinds.
func TestASnapshotKnowsWhatIsNotServed(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.a.b"}}
	crd.Spec.Group, crd.Spec.Names.Kind = "a.b", "Widget"
	aggregated := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1.c.d"}}
	aggregated.Spec.Group, aggregated.Spec.Service = "c.d", &apiregistrationv1.ServiceReference{}
	s, err := olmcore.NewSnapshot([]olmcore.Object{crd, aggregated})
	require.NoError(t, err)
	partial, err := olmcore.NewSnapshot([]olmcore.Object{crd})
	require.NoError(t, err)
	for kind, served := range map[schema.GroupKind]bool{
		widgets:                                         true,
		{Group: "a.b", Kind: "Gadget"}:                  false,
		{Group: "c.d", Kind: "Anything"}:                true,
		{Group: "x.y", Kind: "Anything"}:                false,
		{Group: "apps", Kind: "Daemon"}:                 true,
		{Group: "storage.k8s.io", Kind: "StorageClass"}: true,
	} {
		_, getErr := s.Get(t.Context(), kind.WithVersion("v1"), "ns", "a")
		_, listErr := s.List(t.Context(), kind.WithVersion("v1"), "", nil)
		for _, err := range []error{getErr, listErr} {
			require.Equal(t, served, errors.Is(err, olmcore.ErrNotRead), kind)
			require.Equal(t, !served, meta.IsNoMatchError(err), kind)
		}
		_, err := partial.List(t.Context(), kind.WithVersion("v1"), "", nil)
		require.ErrorIs(t, err, olmcore.ErrNotRead, "other API servers may serve it")
	}
}

func TestObservedIsIncompleteWhenNotRead(t *testing.T) {
	s, err := olmcore.NewSnapshot([]olmcore.Object{pod("a"), pod("b")},
		olmcore.Scope{Kind: podGroup, Namespace: "ns"}, olmcore.Scope{Kind: schema.GroupKind{Kind: "Node"}})
	require.NoError(t, err)
	ctx := t.Context()

	some, err := olmcore.Observe[*corev1.Pod](ctx, s, "ns", nil)
	require.NoError(t, err)
	require.True(t, some.Complete)
	require.Len(t, some.Items, 2)
	none, err := olmcore.Observe[*corev1.Node](ctx, s, "", nil)
	require.NoError(t, err)
	require.Equal(t, olmcore.Found[*corev1.Node](), none)
	unread, err := olmcore.Observe[*appsv1.Deployment](ctx, s, "ns", nil)
	require.NoError(t, err)
	require.Zero(t, unread)

	kind, err := olmcore.ObserveKind(ctx, s, podKind, "ns", nil)
	require.NoError(t, err)
	require.Len(t, kind.Items, 2)
	kind, err = olmcore.ObserveKind(ctx, s, widgets.WithVersion("v1"), "ns", nil)
	require.NoError(t, err)
	require.Zero(t, kind)

	named, err := olmcore.ObserveNamed[*corev1.Pod](ctx, s, "ns", "b", "", "a", "absent", "b")
	require.NoError(t, err)
	require.True(t, named.Complete)
	require.Equal(t, []string{"b", "a"}, []string{named.Items[0].Name, named.Items[1].Name})
	named, err = olmcore.ObserveNamed[*corev1.Pod](ctx, s, "other", "a")
	require.NoError(t, err)
	require.Zero(t, named)
}

// failing is a Reader whose reads fail.
type failing struct{ err error }

func (f failing) Get(context.Context, schema.GroupVersionKind, string, string) (olmcore.Object, error) {
	return nil, f.err
}

func (f failing) List(context.Context, schema.GroupVersionKind, string, labels.Selector) ([]olmcore.Object, error) {
	return nil, f.err
}

func TestReadsThatFail(t *testing.T) {
	failed := errors.New("connection refused")
	for name, r := range map[string]olmcore.Reader{
		"no reader":           nil,
		"a nil snapshot":      (*olmcore.Snapshot)(nil),
		"a server that fails": failing{failed},
	} {
		t.Run(name, func(t *testing.T) {
			want := olmcore.ErrInvalidInput
			if r != nil && name == "a server that fails" {
				want = failed
			}
			_, err := olmcore.Get[*corev1.Pod](t.Context(), r, "ns", "a")
			require.ErrorIs(t, err, want)
			_, err = olmcore.Require[*corev1.Pod](t.Context(), r, "ns", "a")
			require.ErrorIs(t, err, want)
			_, err = olmcore.List[*corev1.Pod](t.Context(), r, "ns", nil)
			require.ErrorIs(t, err, want)
			_, err = olmcore.GetKind(t.Context(), r, podKind, "ns", "a")
			require.ErrorIs(t, err, want)
			_, err = olmcore.Observe[*corev1.Pod](t.Context(), r, "ns", nil)
			require.ErrorIs(t, err, want)
			_, err = olmcore.ObserveKind(t.Context(), r, podKind, "ns", nil)
			require.ErrorIs(t, err, want)
			_, err = olmcore.ObserveNamed[*corev1.Pod](t.Context(), r, "ns", "a")
			require.ErrorIs(t, err, want)
		})
	}
}

func TestRequireSaysWhatDoesNotExist(t *testing.T) {
	s, err := olmcore.NewSnapshot([]olmcore.Object{pod("a")}, olmcore.Everything)
	require.NoError(t, err)
	got, err := olmcore.Require[*corev1.Pod](t.Context(), s, "ns", "a")
	require.NoError(t, err)
	require.Equal(t, "a", got.Name)
	_, err = olmcore.Require[*v1alpha1.Subscription](t.Context(), s, "ns", "b")
	require.True(t, apierrors.IsNotFound(err))
	require.EqualError(t, err, `subscriptions.operators.coreos.com "b" not found`)
}

func TestTheTableOfKinds(t *testing.T) {
	all := olmcore.Kinds()
	names, plurals := map[schema.GroupKind]bool{}, map[string]bool{}
	for i, k := range all {
		text := fmt.Sprint(k.GroupVersionKind)
		require.False(t, names[k.GroupKind()] || plurals[k.Resource()], text)
		names[k.GroupKind()], plurals[k.Resource()] = true, true
		require.True(t, strings.HasPrefix(k.Plural, strings.ToLower(k.GroupVersionKind.Kind[:len(k.GroupVersionKind.Kind)-1])), text)
		require.Equal(t, len(k.ReadBy) > 0, k.Unknown != "", "%s: whoever reads it cannot tell something without it", text)
		require.IsIncreasing(t, append([]string{""}, k.ReadBy...))
		require.False(t, k.Watch != olmcore.WatchNever && len(k.ReadBy) == 0, "%s: a kind that is not read need not be watched", text)
		if _, untyped := olmcore.NewObject(k.GroupVersionKind).(*unstructured.Unstructured); !untyped {
			require.Equal(t, k.GroupVersionKind, olmcore.GVKOf(olmcore.NewObject(k.GroupVersionKind)), text)
		}
		got, known := olmcore.KindOf(k.GroupKind())
		require.True(t, known)
		require.Equal(t, k.Resource(), got.Resource())
		if i > 0 {
			require.LessOrEqual(t, all[i-1].Group, k.Group)
		}
	}
	_, known := olmcore.KindOf(widgets)
	require.False(t, known)
	sub, _ := olmcore.KindOf(schema.GroupKind{Group: "operators.coreos.com", Kind: "Subscription"})
	require.Equal(t, "subscriptions.operators.coreos.com", sub.Resource())
	pod, _ := olmcore.KindOf(podGroup)
	require.Equal(t, "pods", pod.Resource())
}
