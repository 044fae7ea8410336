// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

func TestCreateFillsWhatTheServerOwns(t *testing.T) {
	c := newCluster(t)
	c.Advance(90*time.Second + 500*time.Millisecond)
	in := &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ns", UID: "mine", Generation: 7,
			DeletionTimestamp: &metav1.Time{Time: start}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
		Spec:   &v1alpha1.SubscriptionSpec{Package: "p"},
		Status: v1alpha1.SubscriptionStatus{State: "sent"},
	}
	require.NoError(t, c.Create(in))
	got := stored(t, c, in)
	want := &v1alpha1.Subscription{
		TypeMeta: metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription"},
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ns", UID: "2", ResourceVersion: "2", Generation: 1,
			CreationTimestamp: metav1.NewTime(start.Add(90 * time.Second))},
		Spec: &v1alpha1.SubscriptionSpec{Package: "p"},
	}
	require.Empty(t, cmp.Diff(want, got))
	require.Equal(t, types.UID("mine"), in.UID, "the caller's object is not touched")
	in.Spec.Package = "changed later"
	require.Equal(t, "p", stored(t, c, in).Spec.Package, "objects are copied on their way in")
}

func TestCreateRefuses(t *testing.T) {
	namespaced := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
	}
	with := func(change func(*corev1.ConfigMap)) olmcore.Object {
		cm := namespaced("new")
		change(cm)
		return cm
	}
	var none *corev1.ConfigMap
	cases := map[string]struct {
		object olmcore.Object
		is     func(error) bool
		text   string
	}{
		"a name that is taken":      {namespaced("taken"), apierrors.IsAlreadyExists, `configmaps "taken" already exists`},
		"a missing namespace":       {with(func(o *corev1.ConfigMap) { o.Namespace = "nowhere" }), apierrors.IsNotFound, `namespaces "nowhere" not found`},
		"a namespace being deleted": {with(func(o *corev1.ConfigMap) { o.Namespace = "going" }), apierrors.IsForbidden, "because it is being terminated"},
		"no name":                   {namespaced(""), apierrors.IsInvalid, "metadata.name"},
		"no namespace":              {with(func(o *corev1.ConfigMap) { o.Namespace = "" }), apierrors.IsInvalid, "metadata.namespace"},
		"a bad name":                {namespaced("Not_Good"), apierrors.IsInvalid, "metadata.name"},
		"a bad label":               {with(func(o *corev1.ConfigMap) { o.Labels = map[string]string{"a": "b c"} }), apierrors.IsInvalid, "metadata.labels"},
		"a bad finalizer":           {with(func(o *corev1.ConfigMap) { o.Finalizers = []string{"no slash"} }), apierrors.IsInvalid, "metadata.finalizers"},
		"an owner without UID": {with(func(o *corev1.ConfigMap) {
			o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p"}}
		}), apierrors.IsInvalid, "metadata.ownerReferences.uid"},
		"a resourceVersion":                          {with(func(o *corev1.ConfigMap) { o.ResourceVersion = "1" }), isServerError, "resourceVersion"},
		"a kind that is not served":                  {widget("w"), meta.IsNoMatchError, "Widget"},
		"a Pod without ServiceAccount":               {func() olmcore.Object { p := newPod("p"); p.Spec.ServiceAccountName = "sa"; return p }(), apierrors.IsForbidden, `serviceaccount "sa" not found`},
		"a Pod without containers":                   {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}}, apierrors.IsInvalid, "spec.containers"},
		"a Deployment whose selector does not match": {func() olmcore.Object { d := deployment("d"); d.Spec.Template.Labels = nil; return d }(), apierrors.IsInvalid, "spec.template.metadata.labels"},
		"a dotted Service name":                      {&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a.b", Namespace: "ns"}}, apierrors.IsInvalid, "metadata.name"},
		"a CRD of another name":                      {func() olmcore.Object { d := crd("widgets", "Widget", "v1"); d.Name = "other"; return d }(), apierrors.IsInvalid, "metadata.name"},
		"a CRD without storage":                      {crd("widgets", "Widget"), apierrors.IsInvalid, "spec.versions"},
		"nil":                                        {nil, func(err error) bool { return err != nil }, "object is nil"},
		"typed nil":                                  {none, func(err error) bool { return err != nil }, "object is nil"},
		"content that is not JSON":                   {&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "ns"}, "data": 1}}, apierrors.IsBadRequest, "cannot be decoded"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fake.NewCluster(start)
			for _, ns := range []string{"ns", "going"} {
				require.NoError(t, c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
			}
			require.NoError(t, c.Delete(olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: "going"}))
			require.NoError(t, c.Create(namespaced("taken")))
			before := c.ResourceVersion()
			err := c.Create(tc.object)
			require.ErrorContains(t, err, tc.text)
			require.True(t, tc.is(err), "%v", err)
			require.Equal(t, before, c.ResourceVersion())
		})
	}
}

func TestATerminatingNamespaceIsATransientError(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.Create(configMap("a")))
	require.NoError(t, c.Delete(olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: "ns"}))
	err := c.Create(configMap("b"))
	require.True(t, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause))
	require.Equal(t, olmcore.Transient, olmcore.Classify(err))
}

func TestGenerateNameCounts(t *testing.T) {
	c := newCluster(t)
	for range 2 {
		require.NoError(t, c.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-", Namespace: "ns"}}))
	}
	require.True(t, exists(c, configMap("x-00001")))
	require.True(t, exists(c, configMap("x-00002")))
}

func TestUpdate(t *testing.T) {
	subscription := func() *v1alpha1.Subscription {
		return &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ns"}, Spec: &v1alpha1.SubscriptionSpec{Package: "p"}}
	}
	cases := map[string]struct {
		change     func(*v1alpha1.Subscription)
		written    bool
		generation int64
	}{
		"spec counts a generation":                  {func(s *v1alpha1.Subscription) { s.Spec.Channel = "c" }, true, 2},
		"labels do not":                             {func(s *v1alpha1.Subscription) { s.Labels = map[string]string{"a": "b"} }, true, 1},
		"status is left alone":                      {func(s *v1alpha1.Subscription) { s.Status.State = "x" }, false, 1},
		"nothing changes nothing":                   {func(*v1alpha1.Subscription) {}, false, 1},
		"what the server owns is left alone":        {func(s *v1alpha1.Subscription) { s.Generation, s.CreationTimestamp = 9, metav1.Time{} }, false, 1},
		"a deletionTimestamp cannot be set by hand": {func(s *v1alpha1.Subscription) { s.DeletionTimestamp = &metav1.Time{Time: start} }, false, 1},
	}
	for name, tc := range cases {
		for _, how := range []string{"action", "user", "edit"} {
			t.Run(name+" by "+how, func(t *testing.T) {
				c := newCluster(t)
				require.NoError(t, c.Create(subscription()))
				before := stored(t, c, subscription())
				after := before.DeepCopy()
				tc.change(after)
				switch how {
				case "action":
					require.NoError(t, c.Do(t.Context(), olmcore.UpdateOf(before, after, olmcore.Cause{})))
				case "user":
					require.NoError(t, c.Update(after))
				case "edit":
					after.Status = before.Status // Edit would write it
					require.NoError(t, fake.Edit(c, "ns", "s", func(s *v1alpha1.Subscription) { after.DeepCopyInto(s) }))
				}
				got := stored(t, c, subscription())
				require.Equal(t, tc.generation, got.Generation)
				require.Empty(t, got.Status.State)
				require.Nil(t, got.DeletionTimestamp)
				require.Equal(t, tc.written, got.ResourceVersion != before.ResourceVersion)
			})
		}
	}
}

func TestUpdateStatusTouchesNothingElse(t *testing.T) {
	c := newCluster(t)
	in := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ns"}, Spec: &v1alpha1.SubscriptionSpec{Package: "p"}}
	require.NoError(t, c.Create(in))
	before := stored(t, c, in)
	after := before.DeepCopy()
	after.Status.State = v1alpha1.SubscriptionStateAtLatest
	after.Spec.Package = "other"
	after.Labels = map[string]string{"a": "b"}
	require.NoError(t, c.Do(t.Context(), olmcore.UpdateStatusOf(before, after, olmcore.Cause{})))
	want := before.DeepCopy()
	want.Status.State = v1alpha1.SubscriptionStateAtLatest
	want.ResourceVersion = c.ResourceVersion()
	require.Empty(t, cmp.Diff(want, stored(t, c, in)))
	require.NotSame(t, before, stored(t, c, in), "the observed object stays as it was")
	require.Empty(t, before.Status.State)

	require.NoError(t, c.Create(configMap("cm")))
	cm := stored(t, c, configMap("cm"))
	require.True(t, apierrors.IsNotFound(c.Do(t.Context(), olmcore.UpdateStatusOf(cm, cm, olmcore.Cause{}))), "no such subresource")
}

func TestPreconditions(t *testing.T) {
	cases := map[string]struct {
		change func(*olmcore.Ref)
		class  olmcore.ErrorClass
	}{
		"both hold":                    {func(*olmcore.Ref) {}, olmcore.ClassNone},
		"none given":                   {func(r *olmcore.Ref) { r.UID, r.ResourceVersion = "", "" }, olmcore.ClassNone},
		"another incarnation":          {func(r *olmcore.Ref) { r.UID = "999" }, olmcore.Gone},
		"an older version":             {func(r *olmcore.Ref) { r.ResourceVersion = "1" }, olmcore.Conflict},
		"an object that is not there":  {func(r *olmcore.Ref) { r.Name = "other" }, olmcore.Gone},
		"a kind that is not served":    {func(r *olmcore.Ref) { r.APIVersion, r.Kind = "example.com/v1", "Widget" }, olmcore.NoMatch},
		"a version that is not served": {func(r *olmcore.Ref) { r.APIVersion = "operators.coreos.com/v9" }, olmcore.NoMatch},
	}
	for name, tc := range cases {
		for _, verb := range []olmcore.Verb{olmcore.VerbUpdate, olmcore.VerbUpdateStatus, olmcore.VerbDelete} {
			t.Run(string(verb)+" when "+name, func(t *testing.T) {
				c := newCluster(t)
				in := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ns"}}
				require.NoError(t, c.Create(in))
				before := stored(t, c, in)
				after := before.DeepCopy()
				target := olmcore.RefOf(before)
				tc.change(&target)
				var a olmcore.Action = olmcore.Delete{Target: target}
				switch verb {
				case olmcore.VerbUpdate:
					after.Spec.Image = "i"
					a = olmcore.Update{Target: target, Before: before, After: after}
				case olmcore.VerbUpdateStatus:
					after.Status.Message = "m"
					a = olmcore.UpdateStatus{Target: target, Before: before, After: after}
				}
				version := c.ResourceVersion()
				err := c.Do(t.Context(), a)
				require.Equal(t, tc.class, olmcore.Classify(err), "%v", err)
				require.Equal(t, tc.class == olmcore.ClassNone, c.ResourceVersion() != version)
			})
		}
	}
}

func TestUpdateIsAPatchOfWhatItsWriterKnows(t *testing.T) {
	establish := func(t *testing.T) *fake.Cluster {
		c := newCluster(t)
		require.NoError(t, c.Create(crd("widgets", "Widget", "v1")))
		settle(t, c)
		require.NoError(t, c.Create(widget("w")))
		return c
	}
	t.Run("metadata alone", func(t *testing.T) {
		c := establish(t)
		live := stored(t, c, widget("w"))
		before := &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"},
			ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: "ns", UID: live.GetUID(), ResourceVersion: live.GetResourceVersion()},
		}
		after := before.DeepCopy()
		after.Labels = map[string]string{"a": "b"}
		require.NoError(t, c.Do(t.Context(), olmcore.UpdateOf(before, after, olmcore.Cause{})))
		got := stored(t, c, widget("w"))
		require.Equal(t, map[string]string{"a": "b"}, got.GetLabels())
		require.Equal(t, map[string]any{"size": int64(1)}, got.Object["spec"])
		require.Equal(t, int64(1), got.GetGeneration())
	})
	t.Run("metadata alone of a kind with a Go type", func(t *testing.T) {
		c := newCluster(t)
		cm := configMap("cm")
		cm.Data = map[string]string{"k": "v"}
		require.NoError(t, c.Create(cm))
		before := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: *stored(t, c, cm).ObjectMeta.DeepCopy()}
		after := before.DeepCopy()
		after.Finalizers = []string{"example.com/hold"}
		require.NoError(t, c.Do(t.Context(), olmcore.UpdateOf(before, after, olmcore.Cause{})))
		require.Equal(t, cm.Data, stored(t, c, cm).Data)
		require.Equal(t, after.Finalizers, stored(t, c, cm).Finalizers)
	})
	t.Run("a partial copy of a custom resource", func(t *testing.T) {
		c := establish(t)
		before := widget("w")
		delete(before.Object, "status")
		after := before.DeepCopy()
		after.Object["spec"] = map[string]any{"size": int64(1), "colour": "red"}
		require.NoError(t, c.Do(t.Context(), olmcore.UpdateOf(before, after, olmcore.Cause{})))
		require.Equal(t, map[string]any{"size": int64(1), "colour": "red"}, stored(t, c, widget("w")).Object["spec"])
	})
	t.Run("an old copy, without its version as precondition", func(t *testing.T) {
		c := newCluster(t)
		require.NoError(t, c.Create(configMap("cm")))
		before := stored(t, c, configMap("cm")).DeepCopy()
		require.NoError(t, c.Edit(olmcore.KeyOf(before), func(o olmcore.Object) { o.SetLabels(map[string]string{"another": "writer"}) }))
		after := before.DeepCopy()
		after.Data = map[string]string{"k": "v"}
		u := olmcore.UpdateOf(before, after, olmcore.Cause{})
		u.Target = u.Target.Unversioned()
		require.NoError(t, c.Do(t.Context(), u))
		got := stored(t, c, before)
		require.Equal(t, map[string]string{"another": "writer"}, got.Labels)
		require.Equal(t, after.Data, got.Data)
	})
	t.Run("a status besides, which an update does not write", func(t *testing.T) {
		c := establish(t)
		before := stored(t, c, widget("w")).DeepCopy()
		after := before.DeepCopy()
		after.SetLabels(map[string]string{"a": "b"})
		after.Object["status"] = map[string]any{"phase": "Mine"}
		require.NoError(t, c.Do(t.Context(), olmcore.UpdateOf(before, after, olmcore.Cause{})))
		require.Equal(t, map[string]string{"a": "b"}, stored(t, c, widget("w")).GetLabels())
		require.Equal(t, before.Object["status"], stored(t, c, widget("w")).Object["status"])
	})
}

func TestFinalizersHoldAnObject(t *testing.T) {
	c := newCluster(t)
	cm := configMap("cm")
	cm.Finalizers = []string{"example.com/a", "example.com/b"}
	require.NoError(t, c.Create(cm))
	require.NoError(t, c.Delete(refTo(cm)))
	held := stored(t, c, cm)
	require.Equal(t, start, held.DeletionTimestamp.UTC())
	require.Equal(t, int64(0), *held.DeletionGracePeriodSeconds)

	version := c.ResourceVersion()
	require.NoError(t, c.Delete(refTo(cm)), "again is no error")
	require.Equal(t, version, c.ResourceVersion(), "and no change")

	err := fake.Edit(c, "ns", "cm", func(o *corev1.ConfigMap) { o.Finalizers = append(o.Finalizers, "example.com/late") })
	require.True(t, apierrors.IsInvalid(err), "no finalizer is added to what is being deleted")
	require.NoError(t, fake.Edit(c, "ns", "cm", func(o *corev1.ConfigMap) { o.Finalizers = o.Finalizers[:1] }))
	require.True(t, exists(c, cm))
	require.NoError(t, fake.Edit(c, "ns", "cm", func(o *corev1.ConfigMap) { o.Finalizers = nil }))
	require.False(t, exists(c, cm))
}

func TestImmutableFields(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.Create(
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "ns"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"}},
		deployment("d"), newPod("p")))
	err := fake.Edit(c, "ns", "b", func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "other" })
	require.ErrorContains(t, err, "cannot change roleRef")
	err = fake.Edit(c, "ns", "p", func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"x"} })
	require.ErrorContains(t, err, "pod updates may not change fields other than")
	require.NoError(t, fake.Edit(c, "ns", "p", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "other" }))
	require.NoError(t, fake.Edit(c, "ns", "p", func(p *corev1.Pod) { p.Labels = nil }))
}

func TestReadersGetSortedListsByNamespaceAndLabel(t *testing.T) {
	c := newCluster(t)
	for _, ns := range []string{"b", "a"} {
		for _, name := range []string{"z", "y"} {
			cm := configMap(name)
			cm.Namespace, cm.Labels = ns, map[string]string{"name": name}
			require.NoError(t, c.Create(cm))
		}
	}
	names := func(namespace string, selector map[string]string) (names []string) {
		all, err := c.List(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, namespace, selectorOf(selector))
		require.NoError(t, err)
		for _, o := range all {
			names = append(names, o.GetNamespace()+"/"+o.GetName())
		}
		return names
	}
	require.Equal(t, []string{"a/y", "a/z", "b/y", "b/z"}, names("", nil))
	require.Equal(t, []string{"b/y", "b/z"}, names("b", nil))
	require.Equal(t, []string{"a/z", "b/z"}, names("", map[string]string{"name": "z"}))
	require.Empty(t, names("c", nil))

	shared, err := c.List(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "a", nil)
	require.NoError(t, err)
	require.NoError(t, c.Create(func() olmcore.Object { cm := configMap("x"); cm.Namespace = "a"; return cm }()))
	require.Equal(t, "y", shared[0].GetName(), "a list that was handed out does not change")

	_, err = c.Get(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "a", "none")
	require.True(t, apierrors.IsNotFound(err))
	_, err = c.List(t.Context(), widgetGVK, "", nil)
	require.True(t, meta.IsNoMatchError(err))
}

func TestVerifyNamesWhoeverIsChangedByAReader(t *testing.T) {
	c := fake.NewCluster(start)
	c.AutoCreateNamespaces = true
	c.Sharing().Watch()
	require.NoError(t, c.Create(configMap("cm")))
	require.NoError(t, c.Sharing().Verify())
	stored(t, c, configMap("cm")).Labels = map[string]string{"oops": ""}
	require.ErrorContains(t, c.Sharing().Verify(), "ConfigMap ns/cm was changed")
}

func TestDoRefusesBadActions(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.Create(configMap("cm")))
	target := refTo(configMap("cm"))
	require.ErrorIs(t, c.Do(t.Context(), nil), olmcore.ErrInvalidInput)
	require.ErrorIs(t, c.Do(t.Context(), olmcore.Create{}), olmcore.ErrInvalidInput)
	require.ErrorIs(t, c.Do(t.Context(), olmcore.Update{Target: target}), olmcore.ErrInvalidInput)
	require.ErrorIs(t, c.Do(t.Context(), olmcore.UpdateStatus{Target: olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: "ns"}}), olmcore.ErrInvalidInput)
	require.True(t, meta.IsNoMatchError(c.Do(t.Context(), olmcore.Delete{})))
	require.True(t, apierrors.IsBadRequest(c.Do(t.Context(), olmcore.Delete{Target: target, GracePeriodSeconds: new(int64(-1))})))
}

func TestAuthorizeDecidesByIdentity(t *testing.T) {
	c := newCluster(t)
	c.Authorize = func(as *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		if as != nil && as.Name == "weak" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, target.Name, nil)
		}
		return nil
	}
	a := olmcore.CreateOf(configMap("cm"), olmcore.Cause{})
	a.As = &corev1.ObjectReference{Name: "weak"}
	require.True(t, apierrors.IsForbidden(c.Do(t.Context(), a)))
	a.As = nil
	require.NoError(t, c.Do(t.Context(), a))
}

// isServerError: the API server takes it for a mistake of its own.
func isServerError(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && status.Status().Code == 500
}

func TestAnEditCannotChangeWhatTheServerOwns(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.Create(configMap("a")))
	want := stored(t, c, configMap("a")).DeepCopy()
	require.NoError(t, c.Edit(olmcore.KeyOf(configMap("a")), func(o olmcore.Object) {
		o.SetName("b")
		o.SetNamespace("elsewhere")
		o.SetUID("mine")
		o.SetResourceVersion("99")
		o.SetGeneration(9)
		o.SetCreationTimestamp(metav1.NewTime(start.Add(time.Hour)))
		o.SetDeletionTimestamp(&metav1.Time{Time: start})
		o.SetSelfLink("/here")
		o.SetLabels(map[string]string{"a": "b"})
	}))
	want.Labels, want.ResourceVersion = map[string]string{"a": "b"}, c.ResourceVersion()
	require.Empty(t, cmp.Diff(want, stored(t, c, configMap("a"))))
	require.Len(t, c.Objects(), 2, "the object and its Namespace")
}

// TestValuesThatNoDecoderMakesAreRefused: untyped content can hold any Go value.
func TestValuesThatNoDecoderMakesAreRefused(t *testing.T) {
	c := newCluster(t)
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	c.Discovery().Serve(kind, true)
	widget := func(field string, value any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "w", "namespace": "ns"}, field: value}}
		u.SetGroupVersionKind(kind)
		return u
	}
	require.NoError(t, c.Create(widget("spec", "old")))
	observed, err := c.Get(t.Context(), kind, "ns", "w")
	require.NoError(t, err)
	spec, status := widget("spec", struct{}{}), widget("status", struct{}{})
	copied := observed.DeepCopyObject().(olmcore.Object)
	for name, write := range map[string]func() error{
		"create":               func() error { return c.Create(spec) },
		"load":                 func() error { return c.Load(spec) },
		"update":               func() error { return c.Update(spec) },
		"update of the status": func() error { return c.UpdateStatus(status) },
		"edit": func() error {
			return c.Edit(olmcore.KeyOf(spec), func(o olmcore.Object) { o.(*unstructured.Unstructured).Object = spec.Object })
		},
		"an update":           func() error { return c.Do(t.Context(), olmcore.UpdateOf(observed, spec, olmcore.Cause{})) },
		"an update of a copy": func() error { return c.Do(t.Context(), olmcore.UpdateOf(copied, spec, olmcore.Cause{})) },
		"an update from such a value": func() error {
			return c.Do(t.Context(), olmcore.UpdateStatus{Target: olmcore.RefOf(observed), Before: spec, After: spec})
		},
		"a status":           func() error { return c.Do(t.Context(), olmcore.UpdateStatusOf(observed, status, olmcore.Cause{})) },
		"a status of a copy": func() error { return c.Do(t.Context(), olmcore.UpdateStatusOf(copied, status, olmcore.Cause{})) },
		"no action":          func() error { return c.Do(t.Context(), (*olmcore.Create)(nil)) },
	} {
		require.Error(t, write(), name)
		same, err := c.Get(t.Context(), kind, "ns", "w")
		require.NoError(t, err)
		require.Same(t, observed, same, name)
	}
}

// TestANamespaceOfAClusterScopedObjectIsCleared, as the API server does whatever wrote it.
func TestANamespaceOfAClusterScopedObjectIsCleared(t *testing.T) {
	c := newCluster(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "reader"}}
	require.NoError(t, c.Create(role))
	require.NoError(t, c.Do(t.Context(), olmcore.CreateOf(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}}, olmcore.Cause{})))
	role.Rules = []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
	require.NoError(t, c.Update(role))
	for _, name := range []string{"reader", "other"} {
		stored := fake.Find[*rbacv1.ClusterRole](c, "", name)
		require.NotNil(t, stored, name)
		require.Empty(t, stored.Namespace)
	}
	require.Len(t, fake.Find[*rbacv1.ClusterRole](c, "", "reader").Rules, 1)
}
