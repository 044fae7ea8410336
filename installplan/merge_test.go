// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

const stepHash = "olmcore/step-hash"

// update returns what the plan of one step makes of an observed object; its mark
// is taken off.
func update[T olmcore.Object](t *testing.T, s *v1alpha1.Step, observed T, others ...olmcore.Object) (T, olmcore.Result) {
	t.Helper()
	r := reconcile(t, input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1"), observed), with(others...)))
	for _, a := range r.Actions {
		if u, ok := a.(olmcore.Update); ok {
			after := u.After.DeepCopyObject().(T)
			annotations := after.GetAnnotations()
			require.NotEmpty(t, annotations[stepHash])
			delete(annotations, stepHash)
			after.SetAnnotations(annotations)
			return after, r
		}
	}
	t.Fatalf("no update in %v", describe(r))
	return observed, r
}

func managed(o olmcore.Object) olmcore.Object {
	o.SetLabels(map[string]string{"olm.managed": "true", "theirs": "kept"})
	o.SetAnnotations(map[string]string{"theirs": "kept", "ours": "old"})
	o.SetFinalizers([]string{"theirs"})
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "theirs"}})
	return o
}

// merged is the metadata of a managed object after an update.
func mergedMeta(name string) metav1.ObjectMeta {
	m := meta(name)
	m.Labels = map[string]string{"olm.managed": "true", "theirs": "kept", "ours": "new"}
	m.Annotations = map[string]string{"theirs": "kept", "ours": "new"}
	m.Finalizers = []string{"theirs"}
	m.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "theirs"},
		olmcore.OwnerReferenceTo(csv("a.v1")),
	}
	return m
}

const oursMeta = `"metadata":{"name":"x","labels":{"ours":"new"},"annotations":{"ours":"new"}}`

// TestUpdatesKeepWhatOthersWrote has cases of OLM.
//
// OLM's case: a Service that has an address is updated.
func TestUpdatesKeepWhatOthersWrote(t *testing.T) {
	t.Run("Role", func(t *testing.T) {
		have := managed(&rbacv1.Role{ObjectMeta: meta("x"), Rules: []rbacv1.PolicyRule{{Verbs: []string{"list"}}}}).(*rbacv1.Role)
		got, _ := update(t, step("a.v1", "rbac.authorization.k8s.io", "v1", "Role", "x", `{`+oursMeta+`,"rules":[{"verbs":["get"]}]}`), have)
		same(t, mergedMeta("x"), got.ObjectMeta)
		same(t, []rbacv1.PolicyRule{{Verbs: []string{"get"}}}, got.Rules)
	})
	t.Run("ServiceAccount", func(t *testing.T) {
		have := managed(&corev1.ServiceAccount{ObjectMeta: meta("x"), Secrets: []corev1.ObjectReference{{Name: "token"}},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "theirs"}}}).(*corev1.ServiceAccount)
		got, _ := update(t, step("a.v1", "", "v1", "ServiceAccount", "x", `{`+oursMeta+`,"imagePullSecrets":[{"name":"ours"},{"name":"theirs"}]}`), have)
		same(t, mergedMeta("x"), got.ObjectMeta)
		same(t, []corev1.ObjectReference{{Name: "token"}}, got.Secrets)
		same(t, []corev1.LocalObjectReference{{Name: "theirs"}, {Name: "ours"}}, got.ImagePullSecrets)
	})
	t.Run("Service", func(t *testing.T) {
		have := managed(&corev1.Service{ObjectMeta: meta("x"), Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, ClusterIP: "10.0.0.1", ClusterIPs: []string{"10.0.0.1"},
			IPFamilies: []corev1.IPFamily{"IPv4"}, SessionAffinity: "None",
			Ports: []corev1.ServicePort{{Name: "web", Port: 80, Protocol: "TCP", NodePort: 30080}},
		}}).(*corev1.Service)
		got, _ := update(t, step("a.v1", "", "v1", "Service", "x",
			`{`+oursMeta+`,"spec":{"type":"NodePort","ports":[{"name":"web","port":80},{"name":"more","port":81}]}}`), have)
		same(t, mergedMeta("x"), got.ObjectMeta)
		same(t, corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, ClusterIP: "10.0.0.1", ClusterIPs: []string{"10.0.0.1"}, IPFamilies: []corev1.IPFamily{"IPv4"},
			Ports: []corev1.ServicePort{{Name: "web", Port: 80, NodePort: 30080}, {Name: "more", Port: 81}},
		}, got.Spec)
	})
	t.Run("ConfigMap", func(t *testing.T) {
		have := managed(&corev1.ConfigMap{ObjectMeta: meta("x"), Data: map[string]string{"old": "1"}}).(*corev1.ConfigMap)
		got, _ := update(t, step("a.v1", "", "v1", "ConfigMap", "x", `{`+oursMeta+`,"data":{"new":"1"}}`), have)
		same(t, mergedMeta("x"), got.ObjectMeta)
		same(t, map[string]string{"new": "1"}, got.Data)
	})
	t.Run("ClusterRole", func(t *testing.T) {
		have := &rbacv1.ClusterRole{ObjectMeta: clusterMeta("x"), AggregationRule: &rbacv1.AggregationRule{}}
		have.Labels = map[string]string{"olm.owner": "old.v1", "theirs": "kept"}
		got, _ := update(t, step("a.v1", "rbac.authorization.k8s.io", "v1", "ClusterRole", "x", `{"metadata":{"name":"x"},"rules":[{"verbs":["get"]}]}`), have)
		same(t, map[string]string{
			"olm.managed": "true", "theirs": "kept", "olm.owner": "a.v1", "olm.owner.namespace": ns,
			"olm.owner.kind": "ClusterServiceVersion", "olm.owner.uid": "uid-a.v1",
		}, got.Labels)
		require.Empty(t, got.OwnerReferences)
		require.Nil(t, got.AggregationRule)
	})
}

// TestAnObjectOfSomebodyElseGetsNoOwner: it survives the operator's removal.
func TestAnObjectOfSomebodyElseGetsNoOwner(t *testing.T) {
	s := step("a.v1", "", "v1", "ServiceAccount", "x",
		`{"metadata":{"name":"x","labels":{"ours":"new","olm.owner":"a.v1"}},"automountServiceAccountToken":false,"secrets":[{"name":"ours"}],"imagePullSecrets":[{"name":"ours"}]}`)
	have := &corev1.ServiceAccount{ObjectMeta: meta("x"), ImagePullSecrets: []corev1.LocalObjectReference{{Name: "theirs"}}}
	got, r := update(t, s, have)
	require.Equal(t, map[string]string{"ours": "new"}, got.Labels)
	require.Empty(t, got.OwnerReferences)
	require.Nil(t, got.AutomountServiceAccountToken)
	same(t, []corev1.LocalObjectReference{{Name: "theirs"}, {Name: "ours"}}, got.ImagePullSecrets)
	same(t, []corev1.ObjectReference{{Name: "ours"}}, got.Secrets)
	require.Equal(t, []string{installplan.ReasonUnmanagedObjectUpdated}, reasons(r))

	after := r.Actions[0].(olmcore.Update).After
	r = reconcile(t, input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1"), after)))
	require.Equal(t, []string{status}, describe(r), "the next round finds it done")
}

// TestWhatCannotChangeIsMadeAnew, when it is ours; what can change is changed.
func TestWhatCannotChangeIsMadeAnew(t *testing.T) {
	const role = `{"metadata":{"name":"x"},"roleRef":{"kind":"Role","name":"new"}}`
	old := rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "old"}
	current := rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "new"}
	config := func(immutable *bool) olmcore.Object {
		return &corev1.ConfigMap{ObjectMeta: meta("x"), Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": []byte("1")}, Immutable: immutable}
	}
	secret := func(kind corev1.SecretType, immutable *bool) olmcore.Object {
		return &corev1.Secret{ObjectMeta: meta("x"), Type: kind, Data: map[string][]byte{"a": []byte("1")}, Immutable: immutable}
	}
	priority := func(value int32, policy *corev1.PreemptionPolicy) olmcore.Object {
		return &schedulingv1.PriorityClass{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}, ObjectMeta: clusterMeta("x"), Value: value, PreemptionPolicy: policy}
	}
	for name, c := range map[string]struct {
		group, kind, manifest string
		have                  olmcore.Object
		field                 string
	}{
		"a binding of another role":         {"rbac.authorization.k8s.io", "RoleBinding", role, &rbacv1.RoleBinding{ObjectMeta: meta("x"), RoleRef: old}, "roleRef"},
		"a cluster binding of another role": {"rbac.authorization.k8s.io", "ClusterRoleBinding", role, &rbacv1.ClusterRoleBinding{ObjectMeta: clusterMeta("x"), RoleRef: old}, "roleRef"},
		"a binding of the same role":        {"rbac.authorization.k8s.io", "RoleBinding", role, &rbacv1.RoleBinding{ObjectMeta: meta("x"), RoleRef: current, Subjects: []rbacv1.Subject{{Name: "y"}}}, ""},
		"immutable data":                    {"", "ConfigMap", `{"metadata":{"name":"x"},"immutable":true,"data":{"a":"2"},"binaryData":{"b":"MQ=="}}`, config(new(true)), "data"},
		"immutable binary data":             {"", "ConfigMap", `{"metadata":{"name":"x"},"immutable":true,"data":{"a":"1"},"binaryData":{"b":"Mg=="}}`, config(new(true)), "data"},
		"data that is immutable no more":    {"", "ConfigMap", `{"metadata":{"name":"x"},"data":{"a":"1"},"binaryData":{"b":"MQ=="}}`, config(new(true)), "immutable"},
		"immutable data that stays":         {"", "ConfigMap", `{"metadata":{"name":"x","labels":{"a":"b"}},"immutable":true,"data":{"a":"1"},"binaryData":{"b":"MQ=="}}`, config(new(true)), ""},
		"data that becomes immutable":       {"", "ConfigMap", `{"metadata":{"name":"x"},"immutable":true,"data":{"a":"2"}}`, config(nil), ""},
		"a Secret of another type":          {"", "BundleSecret", `{"metadata":{"name":"x"},"type":"kubernetes.io/tls"}`, secret("Opaque", nil), "type"},
		"a Secret of any type":              {"", "BundleSecret", `{"metadata":{"name":"x"},"data":{"a":"Mg=="}}`, secret("kubernetes.io/tls", nil), ""},
		"a Secret of the type that it has":  {"", "BundleSecret", `{"metadata":{"name":"x"},"type":"Opaque"}`, secret("", nil), ""},
		"an immutable Secret":               {"", "BundleSecret", `{"metadata":{"name":"x"},"immutable":true,"data":{"a":"Mg=="}}`, secret("Opaque", new(true)), "data"},
		"another priority":                  {"scheduling.k8s.io", "PriorityClass", `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"x"},"value":2}`, priority(1, nil), "value"},
		"no priority any more":              {"scheduling.k8s.io", "PriorityClass", `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"x"}}`, priority(1, nil), "value"},
		"another preemption":                {"scheduling.k8s.io", "PriorityClass", `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"x"},"value":1}`, priority(1, new(corev1.PreemptNever)), "preemptionPolicy"},
		"preemption by default": {"scheduling.k8s.io", "PriorityClass", `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"x"},"value":1,"description":"new"}`,
			priority(1, new(corev1.PreemptLowerPriority)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := step("a.v1", c.group, "v1", c.kind, "x", c.manifest)
			r := reconcile(t, input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1"), managed(c.have))))
			require.Len(t, r.Actions, 1)
			if c.field == "" {
				require.IsType(t, olmcore.Update{}, r.Actions[0])
				return
			}
			_, _, cause := r.Actions[0].Describe()
			require.Equal(t, c.field+" differs and cannot be changed", cause.Message)
			require.Equal(t, c.have.GetUID(), r.Actions[0].(olmcore.Delete).Target.UID)

			c.have.SetLabels(nil)
			in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1"), c.have))
			message := statusOf(in, reconcile(t, in)).Message
			require.Equal(t, "retrying execution due to error: "+olmcore.KeyOf(c.have).Kind+" x exists and its "+c.field+" is immutable", message, "a user's is kept")
		})
	}
}

// TestTwoStepsOfOneObjectAreOneAction with the content of both.
//
// OLM's case: one account in two steps: merged, its secrets stay.
func TestTwoStepsOfOneObjectAreOneAction(t *testing.T) {
	first := step("a.v1", "", "v1", "ServiceAccount", "x", `{"metadata":{"name":"x","labels":{"a":"1","b":"1"}},"imagePullSecrets":[{"name":"one"}]}`)
	second := step("a.v1", "", "v1", "ServiceAccount", "x", `{"metadata":{"name":"x","labels":{"b":"2"}},"imagePullSecrets":[{"name":"two"}]}`)
	in := input(plan(installing, []*v1alpha1.Step{first, second}, started(time.Second)), with(csv("a.v1")))
	r := reconcile(t, in)
	require.Equal(t, []string{status, "create ServiceAccount ops/x (StepAbsent)"}, describe(r))
	made := r.Actions[1].(olmcore.Create).Object.(*corev1.ServiceAccount)
	require.Equal(t, map[string]string{"olm.managed": "true", "a": "1", "b": "2"}, made.Labels)
	same(t, []corev1.LocalObjectReference{{Name: "one"}, {Name: "two"}}, made.ImagePullSecrets)
	require.Equal(t, []v1alpha1.StepStatus{notPresent, notPresent}, statuses(statusOf(in, r)))
}

// TestAnObjectOfTwoOperatorsBelongsToBoth: it stays until the last of them goes.
func TestAnObjectOfTwoOperatorsBelongsToBoth(t *testing.T) {
	account := func(of string) *v1alpha1.Step {
		return step(of, "", "v1", "ServiceAccount", "x", `{"metadata":{"name":"x"}}`)
	}
	in := input(plan(installing, []*v1alpha1.Step{account("a.v1"), account(""), account("b.v1"), account("a.v1"), crdStep("a.v1", "v1"), crdStep("b.v1", "v1")}, started(time.Second)))
	in.ClusterServiceVersions = olmcore.Found[*v1alpha1.ClusterServiceVersion](csv("a.v1"))
	r := reconcile(t, in)
	require.Equal(t, []string{status}, describe(r), "one of them is not there")

	in.ClusterServiceVersions = olmcore.Found[*v1alpha1.ClusterServiceVersion](csv("a.v1"), csv("b.v1"))
	r = reconcile(t, in)
	require.Equal(t, []string{status, "create ServiceAccount ops/x (StepAbsent)", "create CustomResourceDefinition things.example.com (StepAbsent)"}, describe(r))
	made, crd := r.Actions[1].(olmcore.Create).Object, r.Actions[2].(olmcore.Create).Object
	same(t, []metav1.OwnerReference{olmcore.OwnerReferenceTo(csv("a.v1")), olmcore.OwnerReferenceTo(csv("b.v1"))}, made.GetOwnerReferences())
	for _, name := range []string{"ops/a.v1", "ops/b.v1"} {
		require.Equal(t, name, crd.GetAnnotations()["operatorframework.io/installed-alongside-"+alongsideHash(name)])
	}

	// One that the first operator installed gets the second as an owner too.
	alone := applied(t, account("a.v1"), csv("a.v1"))
	later := input(plan(installing, []*v1alpha1.Step{account("b.v1")}, started(time.Second)), with(csv("a.v1"), csv("b.v1"), alone))
	r = reconcile(t, later)
	require.Equal(t, []string{"update ServiceAccount ops/x (StepDiffers)"}, describe(r))
	require.Len(t, r.Actions[0].(olmcore.Update).After.GetOwnerReferences(), 2)
}

// TestAManifestKeepsNothingOfAnotherCluster: identity, times and status are
// those that the API server gives.
func TestAManifestKeepsNothingOfAnotherCluster(t *testing.T) {
	s := step("", "", "v1", "Service", "x", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x","namespace":"elsewhere","uid":"u","resourceVersion":"7",
		"creationTimestamp":"2020-01-01T00:00:00Z","managedFields":[{}],"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]},
		"spec":{"clusterIP":"None"},"status":{"loadBalancer":{}}}`)
	r := reconcile(t, input(plan(installing, []*v1alpha1.Step{s}, started(time.Second))))
	made := r.Actions[1].(olmcore.Create).Object.(*corev1.Service)
	delete(made.Annotations, stepHash)
	same(t, metav1.ObjectMeta{Namespace: ns, Name: "x", Labels: map[string]string{"olm.managed": "true"}}, made.ObjectMeta)
}

// TestAnAlteredObjectIsNotWrittenForEver: an admission webhook that strips the
// mark does not keep the plan busy.
func TestAnAlteredObjectIsNotWrittenForEver(t *testing.T) {
	s := step("a.v1", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x"},"data":{"a":"1"}}`)
	have := managed(&corev1.ConfigMap{ObjectMeta: meta("x"), Data: map[string]string{"a": "2"}})
	in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1"), have))
	require.Equal(t, []string{"update ConfigMap ops/x (StepDiffers)"}, describe(reconcile(t, in)))
	in.LastRun = olmcore.LastResults{{Kind: "ConfigMap", Namespace: ns, Name: "x"}: {Count: 1}}
	r := reconcile(t, in)
	require.Equal(t, complete, statusOf(in, r).Phase)
	require.Equal(t, []string{installplan.ReasonAppliedContentAltered}, reasons(r))
}

func versioned(v string, change ...func(*v1alpha1.ClusterServiceVersion)) func(*v1alpha1.ClusterServiceVersion) {
	return func(c *v1alpha1.ClusterServiceVersion) {
		c.Spec.Version = version.OperatorVersion{Version: semver.MustParse(v)}
		c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "things.example.com", Version: "v1"}}
		for _, f := range change {
			f(c)
		}
	}
}

// TestCustomResourceDefinitionsAreShared: what other namespaces and users put
// there stays.
func TestCustomResourceDefinitionsAreShared(t *testing.T) {
	prefix := "operatorframework.io/installed-alongside-"
	have := installed(crdObject("v1"), true)
	have.Labels = map[string]string{"theirs": "kept", "olm.managed": "true"}
	have.Annotations = map[string]string{
		"theirs": "kept", "cert-manager.io/inject-ca-from": "x",
		prefix + alongsideHash("there/b.v1"): "there/b.v1", prefix + alongsideHash("there/gone.v1"): "there/gone.v1",
	}
	convertedBy("there", "b")(have)
	neighbour := csv("b.v1", versioned("1.0.0", func(c *v1alpha1.ClusterServiceVersion) {
		c.Namespace = "there"
		c.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{Type: v1alpha1.ConversionWebhook, ConversionCRDs: []string{"things.example.com"}}}
	}))
	wider := crdObject("v1", "v2")
	wider.Spec.Versions[0].Storage, wider.Spec.Versions[1].Storage = true, false
	s := step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", wider)
	r := reconcile(t, input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1", versioned("1.0.0")), have, neighbour)))
	require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, describe(r))
	got := r.Actions[0].(olmcore.Update).After.DeepCopyObject().(*apiextensionsv1.CustomResourceDefinition)
	delete(got.Annotations, stepHash)
	require.Equal(t, map[string]string{"theirs": "kept", "olm.managed": "true"}, got.Labels)
	require.Equal(t, map[string]string{
		"theirs": "kept", "cert-manager.io/inject-ca-from": "x",
		prefix + alongsideHash("there/b.v1"): "there/b.v1", prefix + alongsideHash("ops/a.v1"): "ops/a.v1",
	}, got.Annotations)
	require.Len(t, got.Spec.Versions, 2)
	require.Equal(t, apiextensionsv1.WebhookConverter, got.Spec.Conversion.Strategy, "the live version's webhook converts")
}

// TestANewerCustomResourceDefinitionIsKept: an older operator in another
// namespace takes nothing away.
func TestANewerCustomResourceDefinitionIsKept(t *testing.T) {
	prefix := "operatorframework.io/installed-alongside-"
	have := installed(crdObject("v1", "v2"), true)
	have.Annotations = map[string]string{prefix + alongsideHash("there/a.v2"): "there/a.v2"}
	newer := csv("a.v2", versioned("2.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" }))
	own := csv("a.v1", versioned("1.0.0"))
	s := crdStep("a.v1", "v1")
	in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(own, have, newer))
	r := reconcile(t, in)
	require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, describe(r))
	require.Equal(t, []string{installplan.ReasonNewerCRDKept}, reasons(r))
	after := r.Actions[0].(olmcore.Update).After.(*apiextensionsv1.CustomResourceDefinition)
	same(t, have.Spec, after.Spec)
	require.Contains(t, after.Annotations, prefix+alongsideHash("ops/a.v1"))

	in = input(in.InstallPlan, with(own, after, newer))
	require.Equal(t, complete, statusOf(in, reconcile(t, in)).Phase)
}

// TestAnUpdatedCustomResourceDefinitionIsNotRefusedAfterwards: judgements that
// come too late change nothing.
func TestAnUpdatedCustomResourceDefinitionIsNotRefusedAfterwards(t *testing.T) {
	s := crdStep("a.v1", "v1")
	up := applied(t, s, csv("a.v1")).(*apiextensionsv1.CustomResourceDefinition)
	in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1"), up))
	in.CustomResources = olmcore.Found(installplan.ResourceVerdict{CustomResourceDefinition: up.Name, Version: "v1", Name: "x", New: []string{"bad"}})
	require.Equal(t, complete, statusOf(in, reconcile(t, in)).Phase)
}

// TestResourcesThatAreInvalidAlreadyRefuseNothing, nor does a webhook's schema.
func TestResourcesThatAreInvalidAlreadyRefuseNothing(t *testing.T) {
	have := installed(crdObject("v1"), true)
	have.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "older"
	in := input(plan(installing, []*v1alpha1.Step{crdStep("a.v1", "v1")}, started(time.Second)), with(csv("a.v1"), have))
	in.CustomResources = olmcore.Found(installplan.ResourceVerdict{CustomResourceDefinition: have.Name, Version: "v1", Name: "x", Old: []string{"bad"}, New: []string{"bad"}})
	r := reconcile(t, in)
	require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, describe(r))
	require.Equal(t, []string{installplan.ReasonExistingResourceInvalid}, reasons(r))
	in.CustomResources = olmcore.Found(installplan.ResourceVerdict{CustomResourceDefinition: have.Name, Version: "v1", ReadError: "cannot list"})
	require.Equal(t, []string{status}, describe(reconcile(t, in)))
}

// TestACustomResourceDefinitionHasAMinuteToBeServed.
func TestACustomResourceDefinitionHasAMinuteToBeServed(t *testing.T) {
	s := withStatus(waitingAPI, crdStep("a.v1", "v1"))
	up := applied(t, s, csv("a.v1")).(*apiextensionsv1.CustomResourceDefinition)
	up.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionFalse, Message: "taken", LastTransitionTime: *ago(58 * time.Second),
	}}
	const text = "waiting for CustomResourceDefinition things.example.com to be established: taken"
	in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Hour)), with(csv("a.v1"), up))
	r := reconcile(t, in)
	require.Equal(t, text, statusOf(in, r).Message)
	require.Equal(t, 2*time.Second, r.RequeueAfter)
	in.Now = noon.Add(2 * time.Second)
	in.InstallPlan.Status.Message = text
	r = reconcile(t, in)
	require.Equal(t, failed, statusOf(in, r).Phase)
	require.Equal(t, text, statusOf(in, r).Message)
	require.Equal(t, []v1alpha1.StepStatus{waitingAPI}, statuses(statusOf(in, r)))
}
