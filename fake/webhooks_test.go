// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

type validatingWebhook = admissionregistrationv1.ValidatingWebhook

// validating is a configuration with one webhook for every write of ConfigMaps.
func validating(changes ...func(hook *validatingWebhook)) *admissionregistrationv1.ValidatingWebhookConfiguration {
	hook := validatingWebhook{Name: "check.example.com", Rules: []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{"*"},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}}
	for _, change := range changes {
		change(&hook)
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "check"}, Webhooks: []validatingWebhook{hook}}
}

// mutating is the same for a webhook that may change what is written.
func mutating(name string) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.MutatingWebhook{
		{Name: name + ".example.com", Rules: validating().Webhooks[0].Rules},
	}}
}

// record writes down what webhooks are asked, and lets everything pass.
func record(c *fake.Cluster) *[]string {
	asked := new([]string)
	name := func(o olmcore.Object) string {
		if o == nil {
			return "-"
		}
		return o.GetName()
	}
	c.Webhooks = func(call fake.WebhookCall) (fake.WebhookAnswer, error) {
		*asked = append(*asked, fmt.Sprintf("%s: %s %s %s", call.Name, call.Operation, name(call.Old), name(call.New)))
		return fake.WebhookAnswer{}, nil
	}
	return asked
}

// TestWritesAreShownToWebhooks, whoever writes and whether or not that changes anything.
func TestWritesAreShownToWebhooks(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.Create(mutating("change"), validating()))
	asked := record(c)
	stored := func() *corev1.ConfigMap { return fake.Find[*corev1.ConfigMap](c, "ns", "m") }
	changed := func() *corev1.ConfigMap {
		after := stored().DeepCopy()
		after.Data = map[string]string{"version": after.ResourceVersion}
		return after
	}
	key := olmcore.Key{Kind: "ConfigMap", Namespace: "ns", Name: "m"}
	ctx, none := context.Background(), olmcore.Cause{}
	for _, write := range []struct {
		what string
		do   func() error
		want string
	}{
		{"create", func() error { return c.Create(configMap("m")) }, "CREATE - m"},
		{"update", func() error { return c.Update(changed()) }, "UPDATE m m"},
		{"edit", func() error { return c.Edit(key, func(o olmcore.Object) { o.SetLabels(map[string]string{"a": "b"}) }) }, "UPDATE m m"},
		{"patch", func() error { return c.Patch(key, []byte(`{"data":{"x":"y"}}`)) }, "UPDATE m m"},
		{"no change", func() error { return c.Edit(key, func(olmcore.Object) {}) }, "UPDATE m m"},
		{"an action updates", func() error { return c.Do(ctx, olmcore.UpdateOf(stored(), changed(), none)) }, "UPDATE m m"},
		{"an action deletes", func() error { return c.Do(ctx, olmcore.DeleteOf(stored(), none)) }, "DELETE m -"},
		{"an action creates", func() error { return c.Do(ctx, olmcore.CreateOf(configMap("m"), none)) }, "CREATE - m"},
		{"delete", func() error { return c.Delete(olmcore.RefOf(stored())) }, "DELETE m -"},
		{"another kind", func() error { return c.Create(newPod("p")) }, ""},
	} {
		*asked = nil
		require.NoError(t, write.do(), write.what)
		if write.want == "" {
			require.Empty(t, *asked, write.what)
			continue
		}
		require.Equal(t, []string{"change.example.com: " + write.want, "check.example.com: " + write.want}, *asked, write.what)
	}
}

// TestWhichWebhooksAreAsked goes by rules and selectors.
func TestWhichWebhooksAreAsked(t *testing.T) {
	labelled := &metav1.LabelSelector{MatchLabels: map[string]string{"watched": "yes"}}
	bad := &metav1.LabelSelector{MatchLabels: map[string]string{"a b": ""}}
	rules := func(change func(r *admissionregistrationv1.RuleWithOperations)) func(*validatingWebhook) {
		return func(hook *validatingWebhook) { change(&hook.Rules[0]) }
	}
	resources := func(names ...string) func(*validatingWebhook) {
		return rules(func(r *admissionregistrationv1.RuleWithOperations) { r.Resources = names })
	}
	scope := func(s admissionregistrationv1.ScopeType) func(*validatingWebhook) {
		return rules(func(r *admissionregistrationv1.RuleWithOperations) { r.Scope = &s })
	}
	for name, c := range map[string]struct {
		change func(hook *validatingWebhook)
		asked  bool
		err    string
	}{
		"as it is":               {func(*validatingWebhook) {}, true, ""},
		"no rules":               {func(hook *validatingWebhook) { hook.Rules = nil }, false, ""},
		"another operation":      {rules(func(r *admissionregistrationv1.RuleWithOperations) { r.Operations[0] = "DELETE" }), false, ""},
		"the operation":          {rules(func(r *admissionregistrationv1.RuleWithOperations) { r.Operations[0] = "UPDATE" }), true, ""},
		"another group":          {rules(func(r *admissionregistrationv1.RuleWithOperations) { r.APIGroups = []string{"apps"} }), false, ""},
		"all groups":             {rules(func(r *admissionregistrationv1.RuleWithOperations) { r.APIGroups = []string{"*"} }), true, ""},
		"another version":        {rules(func(r *admissionregistrationv1.RuleWithOperations) { r.APIVersions = []string{"v2"} }), false, ""},
		"all versions":           {rules(func(r *admissionregistrationv1.RuleWithOperations) { r.APIVersions = []string{"*"} }), true, ""},
		"another resource":       {resources("secrets"), false, ""},
		"all resources":          {resources("*"), true, ""},
		"all with subresources":  {resources("*/*"), true, ""},
		"all subresources of it": {resources("configmaps/*"), true, ""},
		"a subresource of it":    {resources("configmaps/status"), false, ""},
		"one of several":         {resources("secrets", "configmaps"), true, ""},
		"in namespaces":          {scope("Namespaced"), true, ""},
		"outside of namespaces":  {scope("Cluster"), false, ""},
		"everywhere":             {scope("*"), true, ""},
		"labelled objects":       {func(hook *validatingWebhook) { hook.ObjectSelector = labelled }, true, ""}, // the old one is
		"labelled namespaces":    {func(hook *validatingWebhook) { hook.NamespaceSelector = labelled }, false, ""},
		"other objects": {func(hook *validatingWebhook) {
			hook.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"other": ""}}
		}, false, ""},
		"the namespace by name": {func(hook *validatingWebhook) {
			hook.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "ns"}}
		}, true, ""},
		"a bad object selector":    {func(hook *validatingWebhook) { hook.ObjectSelector = bad }, false, "a b"},
		"a bad namespace selector": {func(hook *validatingWebhook) { hook.NamespaceSelector = bad }, false, "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCluster(t)
			m := configMap("m")
			m.Labels = map[string]string{"watched": "yes"}
			require.NoError(t, w.Create(m))
			require.NoError(t, w.Load(validating(c.change)))
			asked := record(w)
			err := fake.Edit(w, "ns", "m", func(m *corev1.ConfigMap) { m.Labels = nil })
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.asked, len(*asked) > 0)
		})
	}
}

// TestNamespacesAndWhatIsInNone: a selector of namespaces selects Namespaces by their own labels, and everything else
// that is in none.
func TestNamespacesAndWhatIsInNone(t *testing.T) {
	c := newCluster(t)
	everything := func(hook *validatingWebhook) {
		hook.Rules[0].APIGroups, hook.Rules[0].Resources = []string{"*"}, []string{"*/*"}
		hook.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"watched": "yes"}}
	}
	require.NoError(t, c.Create(validating(everything)))
	asked := record(c)
	require.NoError(t, c.Create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "free"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "watched", Labels: map[string]string{"watched": "yes"}}},
		crd("widgets", "Widget", "v1"), configMap("m"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "seen", Namespace: "watched"}},
	))
	require.NoError(t, c.Delete(olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: "free"}))
	require.NoError(t, fake.Edit(c, "", "check", func(v *admissionregistrationv1.ValidatingWebhookConfiguration) {
		v.Labels = map[string]string{"a": "b"}
	}))
	settle(t, c) // the simulation asks no webhooks
	require.NoError(t, fake.Edit(c, "", "widgets.example.com", func(d *apiextensionsv1.CustomResourceDefinition) { d.Status.StoredVersions = []string{"v0"} }))
	require.Equal(t, []string{
		"check.example.com: CREATE - watched", "check.example.com: CREATE - widgets.example.com", "check.example.com: CREATE - seen",
		"check.example.com: UPDATE widgets.example.com widgets.example.com", "check.example.com: UPDATE widgets.example.com widgets.example.com",
	}, *asked)
}

func TestAWebhookThatDeniesOrFails(t *testing.T) {
	ignore := admissionregistrationv1.Ignore
	fails := errors.New("no endpoints")
	for name, tc := range map[string]struct {
		policy *admissionregistrationv1.FailurePolicyType
		denied string
		err    error
		want   string
	}{
		"it allows":                 {},
		"it denies":                 {denied: "not today", want: `admission webhook "check.example.com" denied the request: not today`},
		"it denies, and is ignored": {policy: &ignore, denied: "not today", want: `admission webhook "check.example.com" denied the request: not today`},
		"it fails":                  {err: fails, want: `Internal error occurred: failed calling webhook "check.example.com": failed to call webhook: no endpoints`},
		"it fails, and is ignored":  {policy: &ignore, err: fails},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			require.NoError(t, c.Create(configMap("old"), validating(func(hook *validatingWebhook) { hook.FailurePolicy = tc.policy })))
			c.Webhooks = func(fake.WebhookCall) (fake.WebhookAnswer, error) {
				return fake.WebhookAnswer{Denied: tc.denied}, tc.err
			}
			require.True(t, apierrors.IsNotFound(c.Delete(olmcore.RefOf(configMap("none")))))
			for _, err := range []error{
				c.Create(configMap("m")),
				fake.Edit(c, "ns", "old", func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": "b"} }),
				c.Delete(olmcore.RefOf(configMap("old"))),
			} {
				if tc.want == "" {
					require.NoError(t, err)
					continue
				}
				require.EqualError(t, err, tc.want)
				require.Equal(t, olmcore.Webhook, olmcore.Classify(err))
			}
			require.Equal(t, tc.want == "", fake.Find[*corev1.ConfigMap](c, "ns", "m") != nil)
			require.Equal(t, tc.want == "", fake.Find[*corev1.ConfigMap](c, "ns", "old") == nil)
		})
	}
}

// TestMutatingWebhooksChangeWhatIsWritten, one after the other in the order of their names, and cannot make another
// object of it; what validates comes last.
func TestMutatingWebhooksChangeWhatIsWritten(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.Create(validating(), mutating("b"), mutating("a")))
	var last olmcore.Object
	c.Webhooks = func(call fake.WebhookCall) (fake.WebhookAnswer, error) {
		if call.New == nil {
			return fake.WebhookAnswer{New: configMap("m")}, nil // which means nothing for a DELETE
		}
		if call.Name == "check.example.com" {
			last = call.New
			return fake.WebhookAnswer{}, nil
		}
		m := call.New.(*corev1.ConfigMap)
		m.Data = map[string]string{"by": m.Data["by"] + call.Name[:1]}
		m.Name, m.UID, m.ResourceVersion = "another", "another", "another"
		return fake.WebhookAnswer{New: m}, nil
	}
	require.NoError(t, c.Create(configMap("m")))
	stored := fake.Find[*corev1.ConfigMap](c, "ns", "m")
	require.Equal(t, map[string]string{"by": "ab"}, stored.Data)
	require.NotEqual(t, "another", string(stored.UID))
	require.Equal(t, stored.Data, last.(*corev1.ConfigMap).Data)
	require.NoError(t, fake.Edit(c, "ns", "m", func(m *corev1.ConfigMap) { m.Data["by"] = "me+" }))
	require.Equal(t, map[string]string{"by": "me+ab"}, fake.Find[*corev1.ConfigMap](c, "ns", "m").Data)
	require.Equal(t, stored.UID, fake.Find[*corev1.ConfigMap](c, "ns", "m").UID)
	require.NoError(t, c.Delete(olmcore.RefOf(stored).Unversioned()))

	c.Webhooks = func(call fake.WebhookCall) (fake.WebhookAnswer, error) {
		m := call.New.(*corev1.ConfigMap)
		m.Labels = map[string]string{"not a": "label"}
		return fake.WebhookAnswer{New: m}, nil
	}
	require.ErrorContains(t, c.Create(configMap("m")), "metadata.labels", "what comes out is validated")
	c.Webhooks = func(fake.WebhookCall) (fake.WebhookAnswer, error) {
		return fake.WebhookAnswer{New: &unstructured.Unstructured{Object: map[string]any{"data": 1}}}, nil
	}
	require.ErrorContains(t, c.Create(configMap("m")), "cannot be decoded")
	c.Webhooks = func(fake.WebhookCall) (fake.WebhookAnswer, error) { return fake.WebhookAnswer{Denied: "no"}, nil }
	require.NoError(t, c.Delete(olmcore.Ref{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration", Name: "check"}))
	require.NoError(t, c.Load(configMap("m")))
	require.ErrorContains(t, c.Delete(olmcore.RefOf(configMap("m"))), `"a.example.com" denied`)
	require.NoError(t, c.Delete(olmcore.Ref{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration", Name: "a"}), "whatever webhooks say")
}

// TestStatusIsASubresource that rules name.
func TestStatusIsASubresource(t *testing.T) {
	c := newCluster(t)
	d := deployment("d")
	require.NoError(t, c.Create(d, validating(func(hook *validatingWebhook) {
		hook.Rules[0].APIGroups, hook.Rules[0].Resources = []string{"apps"}, []string{"deployments/status"}
	})))
	var denied []string
	c.Webhooks = func(call fake.WebhookCall) (fake.WebhookAnswer, error) {
		denied = append(denied, call.Subresource)
		return fake.WebhookAnswer{Denied: "no"}, nil
	}
	key := olmcore.KeyOf(d)
	require.NoError(t, c.Patch(key, []byte(`{"spec":{"replicas":3}}`)))
	require.ErrorContains(t, c.Patch(key, []byte(`{"status":{"replicas":3}}`)), "denied the request: no")
	require.ErrorContains(t, c.Edit(key, setReplicas), "denied the request: no")
	after := stored(t, c, d).DeepCopy()
	setReplicas(after)
	require.ErrorContains(t, c.UpdateStatus(after), "denied the request: no")
	require.ErrorContains(t, c.Do(context.Background(), olmcore.UpdateStatusOf(stored(t, c, d), after, olmcore.Cause{})), "denied the request: no")
	require.Equal(t, []string{"status", "status", "status", "status"}, denied)
	require.Zero(t, stored(t, c, d).Status.Replicas)
}

func setReplicas(o olmcore.Object) { o.(*appsv1.Deployment).Status.Replicas = 7 }

// converting is a CRD whose versions a webhook converts.
func converting() *apiextensionsv1.CustomResourceDefinition {
	d := crd("widgets", "Widget", "v1", "v1beta1")
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "ns", Name: "op-service", Path: new("/convert")}, CABundle: []byte("x")},
		ConversionReviewVersions: []string{"v1"},
	}}
	return d
}

// TestAWebhookConvertsCustomResources that are read or written in another version than the stored one.
func TestAWebhookConvertsCustomResources(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.Create(converting()))
	settle(t, c)
	require.NoError(t, c.Create(widget("w")))
	old := widgetGVK
	old.Version = "v1beta1"
	ctx := context.Background()
	read := func() (olmcore.Object, error) { return c.Get(ctx, old, "ns", "w") }
	o, err := read()
	require.NoError(t, err)
	require.Equal(t, "v1beta1", olmcore.GVKOf(o).Version, "without a webhook nothing but the version changes")

	var problem error
	c.Webhooks = func(call fake.WebhookCall) (answer fake.WebhookAnswer, err error) {
		require.Equal(t, "widgets.example.com", call.Name)
		require.Equal(t, admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "op-service", Path: new("/convert")}, CABundle: []byte("x"),
		}, call.Client)
		for _, o := range call.Objects {
			u := o.(*unstructured.Unstructured)
			u.SetAPIVersion("example.com/" + call.Version)
			u.SetLabels(map[string]string{"converted-to": call.Version})
			answer.Objects = append(answer.Objects, u)
		}
		return answer, problem
	}
	o, err = read()
	require.NoError(t, err)
	require.Equal(t, "v1beta1", o.GetLabels()["converted-to"])
	list, err := c.List(ctx, old, "ns", nil)
	require.NoError(t, err)
	require.Equal(t, "v1beta1", list[0].GetLabels()["converted-to"])
	written := widget("x")
	written.SetGroupVersionKind(old)
	require.NoError(t, c.Create(written))
	o, err = c.Get(ctx, widgetGVK, "ns", "x")
	require.NoError(t, err)
	require.Equal(t, "v1", o.GetLabels()["converted-to"])
	list, err = c.List(ctx, old, "nowhere", nil)
	require.NoError(t, err)
	require.Empty(t, list)

	problem = errors.New("no endpoints")
	_, err = read()
	require.EqualError(t, err, "Internal error occurred: conversion webhook for example.com/v1, Kind=Widget failed: no endpoints")
	_, err = c.List(ctx, old, "ns", nil)
	require.ErrorContains(t, err, "no endpoints")
	written.SetName("y")
	require.ErrorContains(t, c.Create(written), "conversion webhook for example.com/v1beta1, Kind=Widget failed")
	_, err = c.Get(ctx, widgetGVK, "ns", "x")
	require.NoError(t, err, "the stored version needs no webhook")
	c.Webhooks = func(fake.WebhookCall) (fake.WebhookAnswer, error) { return fake.WebhookAnswer{}, nil }
	_, err = read()
	require.ErrorContains(t, err, "webhook returned 0 objects, expected 1")
}

// TestWithoutConfigurationsAWriteCostsNothingMore.
func TestWithoutConfigurationsAWriteCostsNothingMore(t *testing.T) {
	cost := func(hook func(fake.WebhookCall) (fake.WebhookAnswer, error)) float64 {
		c := fake.NewCluster(start)
		c.AutoCreateNamespaces = true
		require.NoError(t, c.Create(configMap("m")))
		c.Webhooks = hook
		n := 0
		return testing.AllocsPerRun(100, func() {
			n++
			require.NoError(t, fake.Edit(c, "ns", "m", func(m *corev1.ConfigMap) { m.Data = map[string]string{"n": fmt.Sprint(n % 10)} }))
		})
	}
	// The race detector allocates on its own account.
	require.InDelta(t, cost(nil), cost(func(fake.WebhookCall) (fake.WebhookAnswer, error) { panic("asked") }), 3)
}
