// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// mergedMeta returns the metadata of a managed object after an update.
func mergedMeta(name string) metav1.ObjectMeta {
	m := Meta(name)
	m.Labels = map[string]string{"olm.managed": "true", "theirs": "kept", "ours": "new"}
	m.Annotations = map[string]string{"theirs": "kept", "ours": "new"}
	m.Finalizers = []string{"theirs"}
	m.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "theirs"},
		olmcore.OwnerReferenceTo(CSV("a.v1")),
	}
	return m
}

const oursMeta = `"metadata":{"name":"x","labels":{"ours":"new"},"annotations":{"ours":"new"}}`

// TestServiceAccountsAreMerged compares whole ServiceAccounts after a step. It includes OLM's cases.
func TestServiceAccountsAreMerged(t *testing.T) {
	type account = corev1.ServiceAccount
	owner := func(name string, controller bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: name, UID: CSV(name).UID,
			Controller: new(controller), BlockOwnerDeletion: new(false)}
	}
	flagless := func(name string) metav1.OwnerReference {
		r := owner(name, false)
		r.Controller, r.BlockOwnerDeletion = nil, nil
		return r
	}
	have := func(change func(*account)) *account {
		a := &account{ObjectMeta: Meta("x"), Secrets: []corev1.ObjectReference{{Name: "token"}}}
		a.Labels = map[string]string{"olm.managed": "true"}
		change(a)
		return a
	}
	owned := func(refs ...metav1.OwnerReference) func(*account) {
		return func(a *account) { a.OwnerReferences = refs }
	}
	reference := func(name, more string) string {
		return `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","name":"` + name + `"` + more + `}`
	}
	again := reference("a.v1", `,"uid":"theirs"`)
	for name, c := range map[string]struct {
		have     *account
		metadata string // of the manifest, after its name
		want     *account
		status   v1alpha1.StepStatus
	}{
		"no account exists": {want: have(func(a *account) {
			a.UID, a.ResourceVersion, a.CreationTimestamp, a.Secrets = "", "", metav1.Time{}, nil
			owned(owner("a.v1", false))(a)
		}), status: NotPresent},
		"annotations are joined, the manifest wins": {
			have:     have(func(a *account) { a.Annotations = map[string]string{"theirs": "kept", "ours": "old"} }),
			metadata: `,"annotations":{"ours":"new"}`,
			want: have(func(a *account) {
				a.Annotations = map[string]string{"theirs": "kept", "ours": "new"}
				owned(owner("a.v1", false))(a)
			}),
		},
		"no annotations in the manifest": {
			have: have(func(a *account) { a.Annotations = map[string]string{"theirs": "kept"} }),
			want: have(func(a *account) {
				a.Annotations = map[string]string{"theirs": "kept"}
				owned(owner("a.v1", false))(a)
			}),
		},
		"no owner so far": {have: have(owned()), want: have(owned(owner("a.v1", false)))},
		"another version owns it": {have: have(owned(owner("a.v0", false))),
			want: have(owned(owner("a.v0", false), owner("a.v1", false)))},
		"another version controls it": {have: have(owned(owner("a.v0", true))),
			want: have(owned(owner("a.v0", true), owner("a.v1", false)))},
		"the same version controls it": {have: have(owned(owner("a.v1", true))), want: have(owned(owner("a.v1", false)))},
		"the same owner three times in the manifest": {have: have(owned()), metadata: `,"ownerReferences":[` + strings.Join([]string{again, again, again}, ",") + `]`,
			want: have(owned(flagless("a.v1")))},
		"no account exists, the same owner three times in the manifest": {metadata: `,"ownerReferences":[` + strings.Join([]string{again, again, again}, ",") + `]`,
			want: have(func(a *account) {
				a.UID, a.ResourceVersion, a.CreationTimestamp, a.Secrets = "", "", metav1.Time{}, nil
				owned(flagless("a.v1"))(a)
			}), status: NotPresent},
		"two versions in the manifest, without UIDs": {have: have(owned()), metadata: `,"ownerReferences":[` + reference("a.v0", "") + `,` + reference("a.v1", "") + `]`,
			want: have(owned(flagless("a.v0"), flagless("a.v1")))},
		"a reference without UID exists": {have: have(owned(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "odd"})),
			want: have(owned(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "odd"}, owner("a.v1", false)))},
	} {
		t.Run(name, func(t *testing.T) {
			s := Step("a.v1", "", "v1", "ServiceAccount", "x", `{"metadata":{"name":"x"`+c.metadata+`}}`)
			versions := []olmcore.Object{CSV("a.v0"), CSV("a.v1")}
			in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(versions...))
			if c.have != nil {
				in = input(in.InstallPlan, with(versions...), with(c.have))
			}
			r := reconcile(t, in)
			var got *account
			for _, a := range r.Actions {
				switch a := a.(type) {
				case olmcore.Create:
					got = a.Object.DeepCopyObject().(*account)
				case olmcore.Update:
					got = a.After.DeepCopyObject().(*account)
				}
			}
			require.NotNil(t, got, "%v", Describe(r))
			require.NotEmpty(t, got.Annotations[stepHash])
			delete(got.Annotations, stepHash)
			got.TypeMeta = metav1.TypeMeta{}
			Same(t, c.want, got)
			require.Equal(t, cmp.Or(c.status, Unknown), statusOf(in, r).Plan[0].Status)

			// Once the account exists, the step is done and nothing is written.
			after := got.DeepCopy()
			after.UID, after.ResourceVersion, after.CreationTimestamp = "uid-x", "2", Born
			for _, a := range r.Actions {
				if u, ok := a.(olmcore.Update); ok {
					after = u.After.(*account)
				} else if made, ok := a.(olmcore.Create); ok {
					after.Annotations = made.Object.GetAnnotations()
				}
			}
			next := input(in.InstallPlan.DeepCopy(), with(versions...), with(after))
			next.InstallPlan.Status = statusOf(in, r)
			r = reconcile(t, next)
			require.Equal(t, []string{status}, Describe(r))
			want := Present
			if c.have == nil {
				want = Created
			}
			require.Equal(t, want, statusOf(next, r).Plan[0].Status)
		})
	}
}

// TestUpdatesKeepFieldsOfOtherWriters includes OLM's cases.
func TestUpdatesKeepFieldsOfOtherWriters(t *testing.T) {
	t.Run("Role", func(t *testing.T) {
		have := managed(&rbacv1.Role{ObjectMeta: Meta("x"), Rules: []rbacv1.PolicyRule{{Verbs: []string{"list"}}}}).(*rbacv1.Role)
		got, _ := update(t, Step("a.v1", "rbac.authorization.k8s.io", "v1", "Role", "x", `{`+oursMeta+`,"rules":[{"verbs":["get"]}]}`), have)
		Same(t, mergedMeta("x"), got.ObjectMeta)
		Same(t, []rbacv1.PolicyRule{{Verbs: []string{"get"}}}, got.Rules)
	})
	t.Run("ServiceAccount", func(t *testing.T) {
		have := managed(&corev1.ServiceAccount{ObjectMeta: Meta("x"), Secrets: []corev1.ObjectReference{{Name: "token"}},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "theirs"}}}).(*corev1.ServiceAccount)
		got, _ := update(t, Step("a.v1", "", "v1", "ServiceAccount", "x", `{`+oursMeta+`,"imagePullSecrets":[{"name":"ours"},{"name":"theirs"}]}`), have)
		Same(t, mergedMeta("x"), got.ObjectMeta)
		Same(t, []corev1.ObjectReference{{Name: "token"}}, got.Secrets)
		Same(t, []corev1.LocalObjectReference{{Name: "theirs"}, {Name: "ours"}}, got.ImagePullSecrets)
	})
	t.Run("ConfigMap", func(t *testing.T) {
		have := managed(&corev1.ConfigMap{ObjectMeta: Meta("x"), Data: map[string]string{"old": "1"}}).(*corev1.ConfigMap)
		got, _ := update(t, Step("a.v1", "", "v1", "ConfigMap", "x", `{`+oursMeta+`,"data":{"new":"1"}}`), have)
		Same(t, mergedMeta("x"), got.ObjectMeta)
		Same(t, map[string]string{"new": "1"}, got.Data)
	})
	t.Run("ClusterRole", func(t *testing.T) {
		have := &rbacv1.ClusterRole{ObjectMeta: ClusterMeta("x"), AggregationRule: &rbacv1.AggregationRule{}}
		have.Labels = map[string]string{"olm.owner": "old.v1", "theirs": "kept"}
		got, _ := update(t, Step("a.v1", "rbac.authorization.k8s.io", "v1", "ClusterRole", "x", `{"metadata":{"name":"x"},"rules":[{"verbs":["get"]}]}`), have)
		Same(t, map[string]string{
			"olm.managed": "true", "theirs": "kept", "olm.owner": "a.v1", "olm.owner.namespace": NS,
			"olm.owner.kind": "ClusterServiceVersion", "olm.owner.uid": "uid-a.v1",
		}, got.Labels)
		require.Empty(t, got.OwnerReferences)
		require.Nil(t, got.AggregationRule)
	})
}

// TestUnmanagedServiceAccountKeepsItsMetadata checks that a step adds pull secrets, and the labels and annotations that
// are missing.
func TestUnmanagedServiceAccountKeepsItsMetadata(t *testing.T) {
	have := &corev1.ServiceAccount{ObjectMeta: Meta("x")}
	have.Labels = map[string]string{"team": "users"}
	have.Annotations = map[string]string{"eks.amazonaws.com/role-arn": "users"}
	got, _ := update(t, Step("a.v1", "", "v1", "ServiceAccount", "x",
		`{"metadata":{"name":"x","labels":{"team":"evil","more":"1"},"annotations":{"eks.amazonaws.com/role-arn":"evil","more":"1"}}}`), have)
	require.Equal(t, map[string]string{"team": "users", "more": "1"}, got.Labels)
	require.Equal(t, map[string]string{"eks.amazonaws.com/role-arn": "users", "more": "1"}, got.Annotations)
}

// TestObjectIsReplacedIfAnImmutableFieldDiffers checks that a managed object is replaced, and that mutable fields are
// updated.
func TestObjectIsReplacedIfAnImmutableFieldDiffers(t *testing.T) {
	const role = `{"metadata":{"name":"x"},"roleRef":{"kind":"Role","name":"new"}}`
	old := rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "old"}
	current := rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "new"}
	config := func(immutable *bool) olmcore.Object {
		return &corev1.ConfigMap{ObjectMeta: Meta("x"), Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": []byte("1")}, Immutable: immutable}
	}
	secret := func(kind corev1.SecretType, immutable *bool) olmcore.Object {
		return &corev1.Secret{ObjectMeta: Meta("x"), Type: kind, Data: map[string][]byte{"a": []byte("1")}, Immutable: immutable}
	}
	priority := func(value int32, policy *corev1.PreemptionPolicy) olmcore.Object {
		return &schedulingv1.PriorityClass{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}, ObjectMeta: ClusterMeta("x"), Value: value, PreemptionPolicy: policy}
	}
	for name, c := range map[string]struct {
		group, kind, manifest string
		have                  olmcore.Object
		field                 string
	}{
		"a binding of another role": {
			"rbac.authorization.k8s.io", "RoleBinding", role, &rbacv1.RoleBinding{ObjectMeta: Meta("x"), RoleRef: old}, "roleRef",
		},
		"a cluster binding of another role": {
			"rbac.authorization.k8s.io", "ClusterRoleBinding", role, &rbacv1.ClusterRoleBinding{ObjectMeta: ClusterMeta("x"), RoleRef: old}, "roleRef",
		},
		"a binding of the same role": {
			"rbac.authorization.k8s.io", "RoleBinding", role, &rbacv1.RoleBinding{ObjectMeta: Meta("x"), RoleRef: current, Subjects: []rbacv1.Subject{{Name: "y"}}}, "",
		},
		"immutable data": {
			"", "ConfigMap", `{"metadata":{"name":"x"},"immutable":true,"data":{"a":"2"},"binaryData":{"b":"MQ=="}}`, config(new(true)), "data",
		},
		"immutable binary data": {
			"", "ConfigMap", `{"metadata":{"name":"x"},"immutable":true,"data":{"a":"1"},"binaryData":{"b":"Mg=="}}`, config(new(true)), "data",
		},
		"data that is no longer immutable": {
			"", "ConfigMap", `{"metadata":{"name":"x"},"data":{"a":"1"},"binaryData":{"b":"MQ=="}}`, config(new(true)), "immutable",
		},
		"immutable data without a change": {
			"", "ConfigMap", `{"metadata":{"name":"x","labels":{"a":"b"}},"immutable":true,"data":{"a":"1"},"binaryData":{"b":"MQ=="}}`, config(new(true)), "",
		},
		"data that becomes immutable": {"", "ConfigMap", `{"metadata":{"name":"x"},"immutable":true,"data":{"a":"2"}}`, config(nil), ""},
		"a Secret of another type": {
			"", "BundleSecret", `{"metadata":{"name":"x"},"type":"kubernetes.io/tls"}`, secret("Opaque", nil), "type",
		},
		"a Secret of any type": {
			"", "BundleSecret", `{"metadata":{"name":"x"},"data":{"a":"Mg=="}}`, secret("kubernetes.io/tls", nil), "",
		},
		"a Secret of the type that it has": {"", "BundleSecret", `{"metadata":{"name":"x"},"type":"Opaque"}`, secret("", nil), ""},
		"an immutable Secret": {
			"", "BundleSecret", `{"metadata":{"name":"x"},"immutable":true,"data":{"a":"Mg=="}}`, secret("Opaque", new(true)), "data",
		},
		"another priority": {
			"scheduling.k8s.io", "PriorityClass", `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"x"},"value":2}`, priority(1, nil), "value",
		},
		"no priority in the manifest": {
			"scheduling.k8s.io", "PriorityClass", `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"x"}}`, priority(1, nil), "value",
		},
		"another preemption": {
			"scheduling.k8s.io", "PriorityClass", `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"x"},"value":1}`, priority(1, new(corev1.PreemptNever)), "preemptionPolicy",
		},
		"preemption by default": {"scheduling.k8s.io", "PriorityClass", `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"x"},"value":1,"description":"new"}`,
			priority(1, new(corev1.PreemptLowerPriority)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := Step("a.v1", c.group, "v1", c.kind, "x", c.manifest)
			r := reconcile(t, input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1"), managed(c.have))))
			require.Len(t, r.Actions, 1)
			if c.field == "" {
				require.IsType(t, olmcore.Update{}, r.Actions[0])
				return
			}
			_, _, cause := r.Actions[0].Describe()
			require.Equal(t, c.field+" differs and cannot be changed", cause.Message)
			require.Equal(t, c.have.GetUID(), r.Actions[0].(olmcore.Delete).Target.UID)

			c.have.SetLabels(nil)
			in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1"), c.have))
			message := statusOf(in, reconcile(t, in)).Message
			require.Equal(t, "retrying execution due to error: "+olmcore.KeyOf(c.have).Kind+" x exists and its "+c.field+" is immutable", message, "an object of a user is kept")
		})
	}
}

// TestTwoStepsOfOneObjectAreOneAction checks that the action contains the content of both steps. It includes OLM's
// cases.
func TestTwoStepsOfOneObjectAreOneAction(t *testing.T) {
	first := Step("a.v1", "", "v1", "ServiceAccount", "x", `{"metadata":{"name":"x","labels":{"a":"1","b":"1"}},"imagePullSecrets":[{"name":"one"}]}`)
	second := Step("a.v1", "", "v1", "ServiceAccount", "x", `{"metadata":{"name":"x","labels":{"b":"2"}},"imagePullSecrets":[{"name":"two"}]}`)
	in := input(Plan(Installing, []*v1alpha1.Step{first, second}, Started(time.Second)), with(CSV("a.v1")))
	r := reconcile(t, in)
	require.Equal(t, []string{status, "create ServiceAccount ops/x (StepAbsent)"}, Describe(r))
	made := r.Actions[1].(olmcore.Create).Object.(*corev1.ServiceAccount)
	require.Equal(t, map[string]string{"olm.managed": "true", "a": "1", "b": "2"}, made.Labels)
	Same(t, []corev1.LocalObjectReference{{Name: "one"}, {Name: "two"}}, made.ImagePullSecrets)
	require.Equal(t, []v1alpha1.StepStatus{NotPresent, NotPresent}, Statuses(statusOf(in, r)))
}

func TestTwoStepsOfOneObjectMergeOwnersAndFinalizers(t *testing.T) {
	one := Step("", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x","finalizers":["one"]}}`)
	two := Step("", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x","finalizers":["two"],"ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","name":"b.v1"}]}}`)
	in := input(Plan(Installing, []*v1alpha1.Step{one, two}, Started(time.Second)), with(CSV("b.v1")))
	o := reconcile(t, in).Actions[1].(olmcore.Create).Object
	require.Equal(t, []string{"one", "two"}, o.GetFinalizers())
	want := olmcore.OwnerReferenceTo(CSV("b.v1"))
	want.Controller, want.BlockOwnerDeletion = nil, nil // as in the manifest
	Same(t, []metav1.OwnerReference{want}, o.GetOwnerReferences())
}

// TestUpdateReplacesContent checks that content that is missing or null in the manifest is removed, except for fields
// that the API server assigned.
func TestUpdateReplacesContent(t *testing.T) {
	role, _ := update(t, Step("a.v1", "rbac.authorization.k8s.io", "v1", "Role", "x", `{"metadata":{"name":"x"},"rules":null}`),
		&rbacv1.Role{ObjectMeta: HandedOver("x"), Rules: Rules()})
	require.Empty(t, role.Rules, "null counts as missing")

	secret, _ := update(t, Step("a.v1", "", "v1", "BundleSecret", "x", `{"metadata":{"name":"x"},"data":{"a":"Mg=="}}`),
		&corev1.Secret{ObjectMeta: HandedOver("x"), Type: corev1.SecretTypeTLS})
	require.Equal(t, corev1.SecretTypeTLS, secret.Type)

	have := &corev1.Service{ObjectMeta: HandedOver("x"), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack), IPFamilies: []corev1.IPFamily{"IPv4"},
		ClusterIP: "10.0.0.1", ClusterIPs: []string{"10.0.0.1"}, SessionAffinity: "None",
		Ports: []corev1.ServicePort{{Name: "a", Port: 1, Protocol: "TCP", NodePort: 30001}, {Name: "b", Port: 2, NodePort: 30002}},
	}}
	have.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "1.2.3.4"}}
	service, _ := update(t, Step("a.v1", "", "v1", "Service", "x",
		`{"metadata":{"name":"x"},"spec":{"type":"NodePort","ipFamilyPolicy":"PreferDualStack","ports":[{"name":"a","port":1},{"name":"b","port":2,"nodePort":30009},{"name":"c","port":3}]}}`), have)
	Same(t, corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack), IPFamilies: []corev1.IPFamily{"IPv4"},
		ClusterIP: "10.0.0.1", ClusterIPs: []string{"10.0.0.1"},
		Ports: []corev1.ServicePort{{Name: "a", Port: 1, NodePort: 30001}, {Name: "b", Port: 2, NodePort: 30009}, {Name: "c", Port: 3}},
	}, service.Spec)
	Same(t, have.Status, service.Status)

	inside, _ := update(t, Step("a.v1", "", "v1", "Service", "x", `{"metadata":{"name":"x"},"spec":{"ports":[{"name":"a","port":1}]}}`), have)
	Same(t, []corev1.ServicePort{{Name: "a", Port: 1}}, inside.Spec.Ports)
}

// TestObjectAlteredByAWebhookIsNotWrittenAgain checks that an admission webhook that removes the hash annotation does
// not cause endless updates.
func TestObjectAlteredByAWebhookIsNotWrittenAgain(t *testing.T) {
	s := Step("a.v1", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x"},"data":{"a":"1"}}`)
	have := managed(&corev1.ConfigMap{ObjectMeta: Meta("x"), Data: map[string]string{"a": "2"}})
	in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1"), have))
	require.Equal(t, []string{"update ConfigMap ops/x (StepDiffers)"}, Describe(reconcile(t, in)))
	in.LastRun = olmcore.LastResults{{Kind: "ConfigMap", Namespace: NS, Name: "x"}: {Count: 1}}
	r := reconcile(t, in)
	require.Equal(t, Complete, statusOf(in, r).Phase)
	require.Equal(t, []string{installplan.ReasonAppliedContentAltered}, Reasons(r))
}

// TestMatchingObjectsAreNotUpdated checks that an object with all desired content is not updated only to add the hash
// annotation. An object that belongs to a deleted version of the same name is updated.
func TestMatchingObjectsAreNotUpdated(t *testing.T) {
	s := Step("a.v1", "rbac.authorization.k8s.io", "v1", "ClusterRole", "x", `{"metadata":{"name":"x"},"rules":[{"verbs":["get"]}]}`)
	made := applied(t, s, CSV("a.v1"))
	again := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)),
		with(CSV("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.UID = "reborn" }), made))
	require.Equal(t, []string{"update ClusterRole x (StepDiffers)"}, Describe(reconcile(t, again)))

	unmarked := made.DeepCopyObject().(olmcore.Object)
	unmarked.SetAnnotations(nil)
	in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1"), unmarked))
	require.Equal(t, []string{status}, Describe(reconcile(t, in)))
}

func TestStepHashIgnoresOwners(t *testing.T) {
	bare := Step("", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x"}}`)
	owned := Step("", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"1"}]}}`)
	require.Equal(t, applied(t, bare).GetAnnotations()[stepHash], applied(t, owned).GetAnnotations()[stepHash])
	require.Empty(t, applied(t, owned).GetOwnerReferences())
}

// TestInvalidManifestsAreRefused checks that invalid manifests are refused and that nothing is written.
func TestInvalidManifestsAreRefused(t *testing.T) {
	for name, manifest := range map[string]string{
		"empty": "", "a list": "[]", "a number": "1", "null": "null", "broken": "{", "only a separator": "---\n---", "a string": "metadata",
		"invalid metadata": `{"metadata":1}`, "rules that are none": `{"metadata":{"name":"r"},"rules":"x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			in := input(Plan(Installing, []*v1alpha1.Step{Step("", "", "v1", "Role", "r", manifest)}, Started(time.Second)))
			r := reconcile(t, in)
			require.Equal(t, []string{status}, Describe(r))
			if name != "empty" && name != "null" && name != "only a separator" {
				require.Equal(t, Failed, statusOf(in, r).Phase)
				return
			}
			// OLM retries to read an empty manifest for a minute.
			require.Equal(t, Installing, statusOf(in, r).Phase)
			require.Equal(t, "retrying execution due to error: error parsing step manifest: r: it is empty", statusOf(in, r).Message)
			in.InstallPlan.Status, in.Now = statusOf(in, r), Noon.Add(59*time.Second)
			r = reconcile(t, in)
			require.Equal(t, Failed, statusOf(in, r).Phase)
			require.Equal(t, "error parsing step manifest: r: it is empty", statusOf(in, r).Message)
		})
	}
	several := input(Plan(Installing, []*v1alpha1.Step{Step("", "", "v1", "ConfigMap", "x", "# a\n---\nmetadata: {name: x}\n---\nmetadata: {name: y}\n")}, Started(time.Second)))
	r := reconcile(t, several)
	require.Equal(t, []string{status, "create ConfigMap ops/x (StepAbsent)"}, Describe(r))
	require.Equal(t, []string{installplan.ReasonExtraDocumentsIgnored}, Reasons(r))

	for name, manifest := range map[string]string{
		"JSON with trailing text":       `{"metadata":{"name":"x"},"data":{"1":"a"}}` + "\n---\n" + `{"metadata":{"name":"y"}}`,
		"YAML that looks like JSON":     `{metadata: {name: x}, data: {1: a}}`,
		"keys that are not strings":     "metadata: {name: x}\ndata:\n  1: a\n",
		"a duplicate key in JSON":       `{"metadata":{"name":"y","name":"x"},"data":{"1":"b","1":"a"}}`,
		"a duplicate key in YAML":       "metadata: {name: x}\ndata: {\"1\": b, \"1\": a}\n",
		"keys that differ only in case": `{"metadata":{"name":"x","Name":"y"},"data":{"1":"a"}}`,
	} {
		in := input(Plan(Installing, []*v1alpha1.Step{Step("", "", "v1", "ConfigMap", "x", manifest)}, Started(time.Second)))
		r := reconcile(t, in)
		require.Equal(t, []string{status, "create ConfigMap ops/x (StepAbsent)"}, Describe(r), name)
		require.Equal(t, map[string]string{"1": "a"}, r.Actions[1].(olmcore.Create).Object.(*corev1.ConfigMap).Data, name)
	}
	ambiguous := input(Plan(Installing, []*v1alpha1.Step{Step("", "", "v1", "ConfigMap", "x", "metadata: {name: x}\ndata: {1: a, \"1\": b, true: a, \"true\": b}\n")}, Started(time.Second)))
	require.Equal(t, `error parsing step manifest: x: key "1" is there twice`, statusOf(ambiguous, reconcile(t, ambiguous)).Message)

	misnamed := input(Plan(Installing, []*v1alpha1.Step{Step("", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"y"}}`)}, Started(time.Second)))
	r = reconcile(t, misnamed)
	require.Equal(t, []string{status, "create ConfigMap ops/y (StepAbsent)"}, Describe(r))
	require.Equal(t, []string{installplan.ReasonStepNameDiffers}, Reasons(r))
}

// TestManifestWithoutGroupHasTheGroupOfItsStep checks the behaviour of OLM, which uses the kind of the step.
func TestManifestWithoutGroupHasTheGroupOfItsStep(t *testing.T) {
	crd := CRDStep("", "v1")
	object := CRDObject("v1")
	object.APIVersion = "v1"
	crd.Resource = Step("", "", "v1", "CustomResourceDefinition", object.Name, object).Resource
	made := reconcile(t, input(Plan(Installing, []*v1alpha1.Step{crd}, Started(time.Second)))).Actions[1].(olmcore.Create)
	require.Equal(t, "apiextensions.k8s.io/v1", made.Target.APIVersion)
	require.Equal(t, object.Spec, made.Object.(*apiextensionsv1.CustomResourceDefinition).Spec)

	role := Step("", "", "v1", "Role", "r", `{"apiVersion":"v1","kind":"Role","metadata":{"name":"r"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`)
	made = reconcile(t, input(Plan(Installing, []*v1alpha1.Step{role}, Started(time.Second)))).Actions[1].(olmcore.Create)
	require.Equal(t, "rbac.authorization.k8s.io/v1", made.Target.APIVersion)
	require.Equal(t, Rules(), made.Object.(*rbacv1.Role).Rules)

	version := CSVStep("a.v1")
	version.Resource.Manifest = `{"apiVersion":"v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"},"spec":{"displayName":"Cool"}}`
	made = reconcile(t, input(Plan(Installing, []*v1alpha1.Step{version}, Started(time.Second)))).Actions[1].(olmcore.Create)
	require.Equal(t, "operators.coreos.com/v1alpha1", made.Target.APIVersion)
	require.Equal(t, "Cool", made.Object.(*v1alpha1.ClusterServiceVersion).Spec.DisplayName)

	elsewhere := Step("", "", "v1", "Role", "r", `{"apiVersion":"example.com/v1","kind":"Role","metadata":{"name":"r"}}`)
	in := input(Plan(Installing, []*v1alpha1.Step{elsewhere}, Started(time.Second)))
	require.Equal(t, "error parsing step manifest: r: kind is Role.example.com", statusOf(in, reconcile(t, in)).Message)
}

// TestFieldsThatAClusterAssignsAreRemovedFromManifests checks identity, times and status.
func TestFieldsThatAClusterAssignsAreRemovedFromManifests(t *testing.T) {
	s := Step("", "", "v1", "Service", "x", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x","namespace":"elsewhere","uid":"u","resourceVersion":"7",
		"creationTimestamp":"2020-01-01T00:00:00Z","managedFields":[{}],"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]},
		"spec":{"clusterIP":"None"},"status":{"loadBalancer":{}}}`)
	r := reconcile(t, input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second))))
	made := r.Actions[1].(olmcore.Create).Object.(*corev1.Service)
	delete(made.Annotations, stepHash)
	Same(t, metav1.ObjectMeta{Namespace: NS, Name: "x", Labels: map[string]string{"olm.managed": "true"}}, made.ObjectMeta)
}

// TestManifestKeysMayHaveAnyCase checks the behaviour of encoding/json and OLM.
func TestManifestKeysMayHaveAnyCase(t *testing.T) {
	manifest := `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"},"spec":{"MinKubeVersion":"1.30.0",
		"install":{"strategy":"deployment","spec":{"permissions":[{"serviceaccountname":"x","rules":[]}]}}}}`
	in := input(Plan(Installing, []*v1alpha1.Step{Step("a.v1", "operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "a.v1", manifest)}, Started(time.Second)))
	result := reconcile(t, in)
	require.Equal(t, []string{installplan.ReasonKeyCase, installplan.ReasonKeyCase}, Reasons(result))
	var made *v1alpha1.ClusterServiceVersion
	for _, a := range result.Actions {
		if c, ok := a.(olmcore.Create); ok {
			made = c.Object.(*v1alpha1.ClusterServiceVersion)
		}
	}
	require.Equal(t, "1.30.0", made.Spec.MinKubeVersion)
	require.Equal(t, "x", made.Spec.InstallStrategy.StrategySpec.Permissions[0].ServiceAccountName)

	role := Step("a.v1", "rbac.authorization.k8s.io", "v1", "Role", "r", `{"metadata":{"name":"r"},"Rules":[{"Verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`)
	require.Equal(t, []string{"get"}, applied(t, role, CSV("a.v1")).(*rbacv1.Role).Rules[0].Verbs)
}

// TestYAMLAliasBombIsRefused checks that a manifest whose aliases expand beyond the limit is rejected before it is
// expanded.
func TestYAMLAliasBombIsRefused(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	begin := time.Now()
	in := input(Plan(Installing, []*v1alpha1.Step{Step("", "", "v1", "ConfigMap", "x", "metadata: {name: x}\n"+bomb)}, Started(time.Second)))
	require.Equal(t, Failed, statusOf(in, reconcile(t, in)).Phase)
	require.Less(t, time.Since(begin), 10*time.Second)
}

// FuzzManifest checks that a plan with any manifest continues or fails without a panic, and that written objects have a
// name and a kind.
func FuzzManifest(f *testing.F) {
	for _, s := range []*v1alpha1.Step{CSVStep("a.v1"), CRDStep("a.v1", "v1"), RoleStep("a.v1", "r")} {
		f.Add(s.Resource.Kind, s.Resource.Name, s.Resource.Manifest)
	}
	f.Add("sterServiceVers\x9c", "a.v1", `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"}}`)
	f.Add("Service", "x", "kind: Service\nmetadata: {name: x}\n---\n{}")
	f.Add("ServiceAccount", "x", `{"metadata":{"name":"x","ownerReferences":[{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","name":"a.v1"}]}}`)
	f.Add("RoleBinding", "x", `{"metadata":{"name":"x","labels":{"a":1}},"roleRef":[],"subjects":{}}`)
	f.Add("NetworkPolicy", "x", `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"x"}}`)
	f.Add("BundleSecret", "x", `{"kind":"ConfigMap","name":"h","namespace":"olm","catalogSourceName":"c","catalogSourceNamespace":"olm"}`)
	f.Fuzz(func(t *testing.T, kind, name, manifest string) {
		p := Plan(Installing, []*v1alpha1.Step{Step("a.v1", "", "v1", kind, name, manifest)}, Started(time.Second))
		in := input(p, with(CSV("a.v1")))
		r := reconcile(t, in)
		if err := invariant.Separate(r); err != nil {
			t.Fatal(err)
		}
		if err := invariant.Recordable(r); err != nil {
			t.Fatal(err)
		}
		for _, a := range r.Actions {
			if c, ok := a.(olmcore.Create); ok {
				again := input(Plan(Installing, []*v1alpha1.Step{Step("a.v1", "", "v1", kind, name, manifest)}, Started(time.Second)), with(CSV("a.v1"), seen(c.Object)))
				if got := Describe(reconcile(t, again)); len(got) != 1 || got[0] != status {
					t.Fatalf("what was made is not what was wanted: %v", got)
				}
			}
		}
	})
}
