// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/internal/ownerrefs"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// ownedToo returns an object with further owners: versions of the namespace of the plan.
func ownedToo(o olmcore.Object, versions ...string) olmcore.Object {
	for _, v := range versions {
		refs, _ := ownerrefs.Add(o.GetOwnerReferences(), []metav1.OwnerReference{olmcore.OwnerReferenceTo(CSV(v))})
		o.SetOwnerReferences(refs)
	}
	return marked(o)
}

// labelled returns a cluster-scoped object with the owner labels of a version.
func labelled(o olmcore.Object, namespace, version string) olmcore.Object {
	labels, _ := olmcore.MergeMaps(
		o.GetLabels(),
		(olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: namespace, Name: version, UID: "7"}).Labels(),
	)
	o.SetLabels(labels)
	return o
}

// TestUnmanagedObjectGetsNoOwner checks that an unmanaged object stays when the operator is removed.
func TestUnmanagedObjectGetsNoOwner(t *testing.T) {
	s := Step(
		"a.v1",
		"",
		"v1",
		"ServiceAccount",
		"x",
		`{"metadata":{"name":"x","labels":{"ours":"new","olm.owner":"a.v1"}},"automountServiceAccountToken":false,"secrets":[{"name":"ours"}],"imagePullSecrets":[{"name":"both"},{"name":"ours"}]}`,
	)
	have := &corev1.ServiceAccount{ObjectMeta: Meta("x"), Secrets: []corev1.ObjectReference{{Name: "token"}},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "theirs"}, {Name: "both"}}}
	got, r := update(t, s, have)
	require.Equal(t, map[string]string{"ours": "new"}, got.Labels)
	require.Empty(t, got.OwnerReferences)
	require.Nil(t, got.AutomountServiceAccountToken)
	Same(t, []corev1.LocalObjectReference{{Name: "theirs"}, {Name: "both"}, {Name: "ours"}}, got.ImagePullSecrets)
	Same(t, []corev1.ObjectReference{{Name: "token"}, {Name: "ours"}}, got.Secrets)
	require.Equal(t, []string{installplan.ReasonUnmanagedObjectUpdated}, Reasons(r))

	after := r.Actions[0].(olmcore.Update).After
	r = reconcile(t, input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1"), after)))
	require.Equal(t, []string{status}, Describe(r), "the next round finds it done")
}

// TestObjectOfTwoOperatorsHasBothOwners checks that a shared object stays until both operators are removed.
func TestObjectOfTwoOperatorsHasBothOwners(t *testing.T) {
	account := func(of string) *v1alpha1.Step {
		return Step(of, "", "v1", "ServiceAccount", "x", `{"metadata":{"name":"x"}}`)
	}
	in := input(
		Plan(
			Installing,
			[]*v1alpha1.Step{account("a.v1"), account(""), account("b.v1"), account("a.v1"), CRDStep("a.v1", "v1"), CRDStep("b.v1", "v1")},
			Started(time.Second),
		),
	)
	in.ClusterServiceVersions = olmcore.Found[*v1alpha1.ClusterServiceVersion](CSV("a.v1"))
	r := reconcile(t, in)
	require.Equal(t, []string{status}, Describe(r), "one of them is not there")

	in.ClusterServiceVersions = olmcore.Found[*v1alpha1.ClusterServiceVersion](CSV("a.v1"), CSV("b.v1"))
	r = reconcile(t, in)
	require.Equal(
		t,
		[]string{status, "create ServiceAccount ops/x (StepAbsent)", "create CustomResourceDefinition things.example.com (StepAbsent)"},
		Describe(r),
	)
	made, crd := r.Actions[1].(olmcore.Create).Object, r.Actions[2].(olmcore.Create).Object
	Same(t, []metav1.OwnerReference{olmcore.OwnerReferenceTo(CSV("a.v1")), olmcore.OwnerReferenceTo(CSV("b.v1"))}, made.GetOwnerReferences())
	for _, name := range []string{"ops/a.v1", "ops/b.v1"} {
		require.Equal(t, name, crd.GetAnnotations()["operatorframework.io/installed-alongside-"+alongsideHash(name)])
	}

	// One that the first operator installed gets the second as an owner too.
	alone := applied(t, account("a.v1"), CSV("a.v1"))
	later := input(Plan(Installing, []*v1alpha1.Step{account("b.v1")}, Started(time.Second)), with(CSV("a.v1"), CSV("b.v1"), alone))
	r = reconcile(t, later)
	require.Equal(t, []string{"update ServiceAccount ops/x (StepDiffers)"}, Describe(r))
	require.Len(t, r.Actions[0].(olmcore.Update).After.GetOwnerReferences(), 2)
}

// TestSharedObjectIsTakenOverOnce checks that a plan takes over an object from another plan once, and stops if that
// plan does the same. The observed object may be stale.
func TestSharedObjectIsTakenOverOnce(t *testing.T) {
	role := func(resolving string) *v1alpha1.Step {
		return Step(resolving, "rbac.authorization.k8s.io", "v1", "ClusterRole", "x", `{"metadata":{"name":"x"},"rules":[{"verbs":["get"]}]}`)
	}
	config := func(resolving string) *v1alpha1.Step {
		return Step(resolving, "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x"},"data":{"a":"1"}}`)
	}
	clusterRole := func() olmcore.Object { return managed(&rbacv1.ClusterRole{ObjectMeta: ClusterMeta("x")}) }
	configMap := func() olmcore.Object { return managed(&corev1.ConfigMap{ObjectMeta: Meta("x")}) }
	definition := func(version string) olmcore.Object {
		crd := Installed(CRDObject("v1"), true)
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "theirs"
		crd.Annotations = map[string]string{"operatorframework.io/installed-alongside-" + alongsideHash(version): version}
		return marked(crd)
	}
	reborn := applied(t, role("a.v2"), CSV("a.v2", func(c *v1alpha1.ClusterServiceVersion) { c.UID = "before" }))
	unmarked := definition("ops/a.v2")
	unmarked.SetAnnotations(recordedFor("ops/a.v2"))
	for name, c := range map[string]struct {
		step *v1alpha1.Step
		have olmcore.Object
		left bool
	}{
		"a ClusterRole, still of an earlier incarnation": {role("a.v2"), reborn, false},
		"a ConfigMap that a user created meanwhile": {
			WithStatus(NotPresent, config("a.v2")), &corev1.ConfigMap{ObjectMeta: Meta("x")}, false,
		},
		"a definition that a user created meanwhile":    {WithStatus(NotPresent, CRDStep("a.v2", "v1")), unmarked, false},
		"a ClusterRole, now of another namespace":       {role("a.v2"), labelled(clusterRole(), "elsewhere", "a.v2"), true},
		"a ClusterRole, now of another package":         {role("a.v2"), labelled(clusterRole(), NS, "b.v1"), true},
		"a ClusterRole, still of the predecessor":       {role("a.v2"), marked(labelled(clusterRole(), NS, "a.v1")), false},
		"a ClusterRole, still of a renamed predecessor": {role("a.v2"), marked(labelled(clusterRole(), NS, "old.v1")), false},
		"a ClusterRole without owner":                   {role(""), marked(clusterRole()), true},
		"a ConfigMap of both":                           {config("a.v2"), ownedToo(configMap(), "a.v2", "b.v1"), true},
		"a ConfigMap, not of this one yet":              {config("a.v2"), ownedToo(configMap(), "b.v1"), false},
		"a ConfigMap of a user":                         {config("a.v2"), marked(&corev1.ConfigMap{ObjectMeta: Meta("x")}), true},
		"a ConfigMap without owner":                     {config(""), marked(configMap()), true},
		"a definition of both":                          {CRDStep("a.v2", "v1"), definition("ops/a.v2"), true},
		"a definition, not of this one yet":             {CRDStep("a.v2", "v1"), definition("ops/b.v1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			own := CSV("a.v2", func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "old.v1" })
			in := input(Plan(Installing, []*v1alpha1.Step{c.step}, Started(time.Second)), with(own, CSV("b.v1"), c.have))
			in.Config.OverwriteUnmanaged = true // an object of a user too
			in.LastRun = olmcore.LastResults{olmcore.KeyOf(c.have): {Count: 1}}
			r := reconcile(t, in)
			if !c.left {
				require.IsType(t, olmcore.Update{}, r.Actions[len(r.Actions)-1])
				require.NotContains(t, Reasons(r), installplan.ReasonSharedObject)
				return
			}
			if owner, labelled := olmcore.OwnerOf(c.have.GetLabels()); labelled {
				recorded := r.Actions[len(r.Actions)-1].(olmcore.Update).After
				kept, _ := olmcore.OwnerOf(recorded.GetLabels())
				require.Equal(t, owner, kept)
				want := []olmcore.Owner{{Kind: "ClusterServiceVersion", Namespace: NS, Name: "a.v2", UID: own.UID}}
				require.Equal(t, want, olmcore.CoOwners(recorded.GetAnnotations()))
				again := input(Plan(Installing, []*v1alpha1.Step{c.step}, Started(time.Second)), with(own, CSV("b.v1"), recorded))
				again.Config, again.LastRun = in.Config, in.LastRun
				r = reconcile(t, again)
			}
			require.Equal(t, Complete, statusOf(in, r).Phase)
			require.Equal(t, []string{installplan.ReasonSharedObject}, Reasons(r))
			in.LastRun = olmcore.LastResults{olmcore.KeyOf(c.have): {Class: olmcore.Conflict, Count: 1}}
			r = reconcile(t, in)
			require.IsType(t, olmcore.Update{}, r.Actions[len(r.Actions)-1], "nothing was written yet")
		})
	}
}

// TestCoOwnersAreRecorded checks which versions a cluster-scoped object records besides the one that its labels name,
// when a step of version a.v2 writes it.
func TestCoOwnersAreRecorded(t *testing.T) {
	role := func(annotations string, versions ...string) (steps []*v1alpha1.Step) {
		for _, version := range versions {
			steps = append(steps, Step(version, "rbac.authorization.k8s.io", "v1", "ClusterRole", "x",
				`{"metadata":{"name":"x"`+annotations+`},"rules":[{"verbs":["get"]}]}`))
		}
		return steps
	}
	clusterRole := func(namespace, name string, others ...string) olmcore.Object {
		o := labelled(managed(&rbacv1.ClusterRole{ObjectMeta: ClusterMeta("x")}), namespace, name)
		var owners []olmcore.Owner
		for _, other := range others {
			n, v, _ := strings.Cut(other, "/")
			owners = append(owners, olmcore.Owner{Namespace: n, Name: v})
		}
		o.SetAnnotations(olmcore.SetCoOwners(o.GetAnnotations(), owners))
		return o
	}
	forged := ""
	for key, value := range olmcore.SetCoOwners(nil, []olmcore.Owner{{Namespace: "other", Name: "x.v1"}}) {
		forged = `,"annotations":{"` + key + `":"` + value + `"}`
	}
	for name, c := range map[string]struct {
		steps []*v1alpha1.Step
		have  olmcore.Object
		want  []string
	}{
		"a new object":                     {role("", "a.v2"), nil, nil},
		"a new object of two packages":     {role("", "a.v2", "b.v1"), nil, []string{"ops/b.v1"}},
		"a bundle that records another":    {role(forged, "a.v2"), nil, nil},
		"taken from another namespace":     {role("", "a.v2"), clusterRole("elsewhere", "a.v2"), []string{"elsewhere/a.v2"}},
		"taken from another package":       {role("", "a.v2"), clusterRole(NS, "b.v1"), []string{"ops/b.v1"}},
		"taken from the predecessor":       {role("", "a.v2"), clusterRole(NS, "a.v1"), nil},
		"taken from a renamed predecessor": {role("", "a.v2"), clusterRole(NS, "old.v1", "elsewhere/x.v1"), []string{"elsewhere/x.v1"}},
		"taken back after the predecessor lost it": {
			role("", "a.v2"), clusterRole("elsewhere", "x.v1", "ops/a.v1", "ops/a.v2"), []string{"elsewhere/x.v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			versions := []olmcore.Object{CSV("a.v2", func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "old.v1" }), CSV("b.v1")}
			if c.have != nil {
				versions = append(versions, c.have)
			}
			in := input(Plan(Installing, c.steps, Started(time.Second)), with(versions...))
			r := reconcile(t, in)
			var written olmcore.Object
			switch a := r.Actions[len(r.Actions)-1].(type) {
			case olmcore.Create:
				written = a.Object
			case olmcore.Update:
				written = a.After
			}
			require.Equal(t, "a.v2", written.GetLabels()["olm.owner"])
			var got []string
			for _, owner := range olmcore.CoOwners(written.GetAnnotations()) {
				got = append(got, owner.Namespace+"/"+owner.Name)
			}
			require.Equal(t, c.want, got)
			again := input(Plan(Installing, c.steps, Started(time.Second)), with(append(versions[:2], written)...))
			require.Equal(t, Complete, statusOf(again, reconcile(t, again)).Phase, "written once")
		})
	}
}

// TestObjectOfAnotherOperatorIsNotDeleted checks that an object of another operator is not deleted, even if the step
// cannot be applied otherwise. An object of the predecessor is deleted.
func TestObjectOfAnotherOperatorIsNotDeleted(t *testing.T) {
	binding := func(cluster bool) olmcore.Object {
		ref := rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "other"}
		if cluster {
			return managed(&rbacv1.ClusterRoleBinding{ObjectMeta: ClusterMeta("x"), RoleRef: ref})
		}
		return managed(&rbacv1.RoleBinding{ObjectMeta: Meta("x"), RoleRef: ref})
	}
	for name, c := range map[string]struct {
		have    olmcore.Object
		deleted bool
	}{
		"without owner":                        {binding(false), true},
		"of this version":                      {ownedToo(binding(false), "a.v2"), true},
		"of the predecessor":                   {ownedToo(binding(false), "a.v1"), true},
		"of a renamed predecessor":             {ownedToo(binding(false), "old.v1"), true},
		"of another operator":                  {ownedToo(binding(false), "b.v1"), false},
		"of this version and another operator": {ownedToo(binding(false), "a.v2", "b.v1"), false},
		"cluster-wide, without owner":          {binding(true), true},
		"cluster-wide, of this version":        {labelled(binding(true), NS, "a.v2"), true},
		"cluster-wide, of the predecessor":     {labelled(binding(true), NS, "a.v1"), true},
		"cluster-wide, of another operator":    {labelled(binding(true), NS, "b.v1"), false},
		"cluster-wide, of another namespace":   {labelled(binding(true), "elsewhere", "a.v2"), false},
	} {
		t.Run(name, func(t *testing.T) {
			kind := olmcore.KeyOf(c.have).Kind
			s := Step("a.v2", "rbac.authorization.k8s.io", "v1", kind, "x",
				`{"metadata":{"name":"x"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"mine"}}`)
			own := CSV("a.v2", func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "old.v1" })
			in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(own, c.have))
			r := reconcile(t, in)
			if c.deleted {
				require.Equal(t, []string{"delete"}, verbs(r))
				in.LastRun = olmcore.LastResults{olmcore.KeyOf(c.have): {Count: 1}}
				require.Equal(t, []string{"delete"}, verbs(reconcile(t, in)), "a stale list")
				return
			}
			require.Equal(t, []string{"updateStatus"}, verbs(r))
			require.Equal(t, "retrying execution due to error: "+kind+" x exists and its roleRef is immutable", statusOf(in, r).Message)
		})
	}
}

// TestOwnersOfAManifestKeepTheirFlags checks that only the UID of an owner reference is set.
func TestOwnersOfAManifestKeepTheirFlags(t *testing.T) {
	const start = `{"metadata":{"name":"x","ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","name":"a.v1","uid":"old"`
	for name, c := range map[string]struct {
		flags             string
		controller, block *bool
	}{
		"none":           {},
		"controller":     {`,"controller":true`, new(true), nil},
		"no controller":  {`,"controller":false`, new(false), nil},
		"blocks":         {`,"blockOwnerDeletion":true`, nil, new(true)},
		"both":           {`,"controller":true,"blockOwnerDeletion":false`, new(true), new(false)},
		"null":           {`,"controller":null,"blockOwnerDeletion":null`, nil, nil},
		"of other types": {`,"controller":"true","blockOwnerDeletion":1`, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(
				Plan(Installing, []*v1alpha1.Step{Step("", "", "v1", "ConfigMap", "x", start+c.flags+`}]}}`)}, Started(time.Second)),
				with(CSV("a.v1")),
			)
			made := reconcile(t, in).Actions[1].(olmcore.Create).Object
			want := metav1.OwnerReference{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "a.v1", UID: "uid-a.v1",
				Controller: c.controller, BlockOwnerDeletion: c.block}
			Same(t, []metav1.OwnerReference{want}, made.GetOwnerReferences())
		})
	}
}

// TestObjectsWaitForTheVersionThatOwnsThem checks that objects that need the UID of their version are created once the
// version is observed.
func TestObjectsWaitForTheVersionThatOwnsThem(t *testing.T) {
	named := `{"metadata":{"name":"x","ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","name":"a.v1"}]}}`
	for name, s := range map[string]*v1alpha1.Step{
		"its own objects":                  Step("a.v1", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x"}}`),
		"objects with its labels":          Step("a.v1", "rbac.authorization.k8s.io", "v1", "ClusterRole", "x", `{"metadata":{"name":"x"}}`),
		"objects that name it as an owner": Step("", "", "v1", "ServiceAccount", "x", named),
	} {
		in := input(Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1"), s}, Started(time.Second)))
		r := reconcile(t, in)
		require.Equal(t, []string{status, "create ClusterServiceVersion ops/a.v1 (StepAbsent)"}, Describe(r), name)
		require.Equal(t, []v1alpha1.StepStatus{NotPresent, Unknown}, Statuses(statusOf(in, r)), name)

		with(CSV("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.UID = "" }))(&in)
		r = reconcile(t, in)
		require.NotContains(t, Reasons(r), installplan.ReasonStepRefused, name)
		require.Equal(t, []string{status}, Describe(r), name)
	}
}

func TestLabelsAndOwnersMakeAnObjectManaged(t *testing.T) {
	for name, c := range map[string]struct {
		meta    func(*corev1.ConfigMap)
		managed bool
	}{
		"without owner":         {func(*corev1.ConfigMap) {}, false},
		"labelled as unmanaged": {func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"olm.managed": "false"} }, false},
		"labelled":              {func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"olm.managed": "true"} }, true},
		"with an owner label":   {func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"olm.owner": "x"} }, true},
		"owned by a version": {func(cm *corev1.ConfigMap) {
			cm.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(CSV("b.v1"))}
		}, true},
		"owned by a Node": {func(cm *corev1.ConfigMap) {
			cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "n"}}
		}, false},
	} {
		have := &corev1.ConfigMap{ObjectMeta: Meta("x")}
		c.meta(have)
		s := Step("a.v1", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x"},"data":{"a":"1"}}`)
		if !c.managed {
			in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1"), have))
			require.Equal(t, []string{installplan.ReasonStepRefused}, Reasons(reconcile(t, in)), name)
			continue
		}
		got, _ := update(t, s, have)
		require.True(t, olmcore.OwnedBy(got, "uid-a.v1"), name)
		require.Equal(t, "true", got.Labels["olm.managed"], name)
	}
}

// TestMissingOwnerFailsThePlan checks that the plan fails after a minute, unless the owner is created in time. It
// includes OLM's cases.
func TestMissingOwnerFailsThePlan(t *testing.T) {
	for name, c := range map[string]struct {
		comes time.Duration
		want  v1alpha1.InstallPlanPhase
	}{
		"never":            {want: Failed},
		"after 50 seconds": {comes: 50 * time.Second, want: Complete},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := World(t)
			require.NoError(t, cluster.Load(Plan(Installing, []*v1alpha1.Step{RoleStep("a.v1", "r")}, func(p *v1alpha1.InstallPlan) { p.UID = "" })))
			d := driven(t, cluster, 50*time.Second, plans(installplan.Config{}))
			require.Equal(t, Installing, onlyPlan(t, cluster).Status.Phase)
			require.Nil(t, fake.Find[*rbacv1.Role](cluster, NS, "r"))
			if c.comes > 0 {
				require.NoError(
					t,
					cluster.Create(CSV("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.ObjectMeta = metav1.ObjectMeta{Namespace: NS, Name: "a.v1"} })),
				)
			}
			require.NoError(t, d.RunFor(t.Context(), time.Minute))
			p := onlyPlan(t, cluster)
			require.Equal(t, c.want, p.Status.Phase, p.Status.Message)
			if c.want == Failed {
				require.Equal(
					t,
					`error generating ownerrefs for role r: clusterserviceversions.operators.coreos.com "a.v1" not found`,
					p.Status.Message,
				)
				require.Nil(t, fake.Find[*rbacv1.Role](cluster, NS, "r"))
				return
			}
			require.True(
				t,
				olmcore.OwnedBy(fake.Find[*rbacv1.Role](cluster, NS, "r"), fake.Find[*v1alpha1.ClusterServiceVersion](cluster, NS, "a.v1").UID),
			)
		})
	}
}

// TestUnmanagedObjectIsUsedOrRefused checks for each kind that a plan writes an existing object that OLM does not
// manage.
func TestUnmanagedObjectIsUsedOrRefused(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io"
	web := intstr.FromInt32(8080)
	roleRef := rbacv1.RoleRef{APIGroup: rbac, Kind: "Role", Name: "x"}
	subjects := []rbacv1.Subject{{Kind: "User", APIGroup: rbac, Name: "jane"}}
	for name, c := range map[string]struct {
		step          *v1alpha1.Step
		same, differs olmcore.Object
		in            string
	}{
		"ConfigMap": {step: Step("a.v1", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x","labels":{"l":"1"}},"data":{"a":"1"}}`),
			same:    &corev1.ConfigMap{ObjectMeta: Meta("x"), Data: map[string]string{"a": "1", "mine": "2"}},
			differs: &corev1.ConfigMap{ObjectMeta: Meta("x"), Data: map[string]string{"a": "2"}}, in: "data"},
		"Secret of a bundle": {step: Step("a.v1", "", "v1", "BundleSecret", "x", `{"metadata":{"name":"x"},"data":{"a":"MQ=="}}`),
			same:    &corev1.Secret{ObjectMeta: Meta("x"), Data: map[string][]byte{"a": []byte("1")}},
			differs: &corev1.Secret{ObjectMeta: Meta("x"), Data: map[string][]byte{"a": []byte("2")}}, in: "data"},
		"Service": {step: Step("a.v1", "", "v1", "Service", "x", `{"metadata":{"name":"x"},"spec":{"ports":[{"port":80,"targetPort":8080}]}}`),
			same: &corev1.Service{ObjectMeta: Meta("x"), Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", SessionAffinity: "None",
				Ports: []corev1.ServicePort{{Port: 80, TargetPort: web, Protocol: "TCP"}}}},
			differs: &corev1.Service{ObjectMeta: Meta("x"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 81, TargetPort: web}}}}, in: "spec"},
		"Role": {step: RoleStep("a.v1", "x"), same: &rbacv1.Role{ObjectMeta: Meta("x"), Rules: Rules()},
			differs: &rbacv1.Role{ObjectMeta: Meta("x"), Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}}}}, in: "rules"},
		"RoleBinding": {step: Step("a.v1", rbac, "v1", "RoleBinding", "x", `{"metadata":{"name":"x"},"roleRef":{"apiGroup":"`+rbac+`","kind":"Role","name":"x"},"subjects":[{"kind":"ServiceAccount","name":"evil"}]}`),
			same:    &rbacv1.RoleBinding{ObjectMeta: Meta("x"), RoleRef: roleRef, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "evil"}}},
			differs: &rbacv1.RoleBinding{ObjectMeta: Meta("x"), RoleRef: roleRef, Subjects: subjects}, in: "subjects"},
		"ClusterRole": {step: Step("a.v1", rbac, "v1", "ClusterRole", "x", `{"metadata":{"name":"x"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`),
			same: &rbacv1.ClusterRole{ObjectMeta: ClusterMeta("x"), Rules: Rules()}, differs: &rbacv1.ClusterRole{ObjectMeta: ClusterMeta("x")}, in: "rules"},
		"ClusterRoleBinding": {step: Step("a.v1", rbac, "v1", "ClusterRoleBinding", "x", `{"metadata":{"name":"x"},"roleRef":{"apiGroup":"`+rbac+`","kind":"Role","name":"x"},"subjects":[]}`),
			same:    &rbacv1.ClusterRoleBinding{ObjectMeta: ClusterMeta("x"), RoleRef: roleRef},
			differs: &rbacv1.ClusterRoleBinding{ObjectMeta: ClusterMeta("x"), RoleRef: roleRef, Subjects: subjects}, in: "subjects"},
		"PodDisruptionBudget": {step: Step("a.v1", "policy", "v1", "PodDisruptionBudget", "x", `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"x"},"spec":{"minAvailable":8080}}`),
			same:    &policyv1.PodDisruptionBudget{ObjectMeta: Meta("x"), Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &web}},
			differs: &policyv1.PodDisruptionBudget{ObjectMeta: Meta("x")}, in: "spec"},
		"NetworkPolicy": {step: Step("a.v1", "networking.k8s.io", "v1", "NetworkPolicy", "x", `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"x"},"spec":{"podSelector":{},"policyTypes":["Ingress"]}}`),
			same:    &networkingv1.NetworkPolicy{ObjectMeta: Meta("x"), Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Ingress"}}},
			differs: &networkingv1.NetworkPolicy{ObjectMeta: Meta("x"), Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Egress"}}}, in: "spec"},
		"PriorityClass": {step: Step("a.v1", "scheduling.k8s.io", "v1", "PriorityClass", "x", `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"x"},"value":7,"description":"new"}`),
			same:    &schedulingv1.PriorityClass{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}, ObjectMeta: ClusterMeta("x"), Value: 7, Description: "new"},
			differs: &schedulingv1.PriorityClass{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}, ObjectMeta: ClusterMeta("x"), Value: 7, Description: "old"}, in: "description"},
	} {
		t.Run(name, func(t *testing.T) {
			round := func(have olmcore.Object, change ...func(*installplan.Input)) (installplan.Input, olmcore.Result) {
				in := input(Plan(Installing, []*v1alpha1.Step{c.step}, Started(time.Second)), with(CSV("a.v1"), have))
				for _, f := range change {
					f(&in)
				}
				return in, reconcile(t, in)
			}
			in, r := round(c.same)
			require.Equal(t, []string{status}, Describe(r))
			require.Equal(t, Complete, statusOf(in, r).Phase, "it is used as it is")

			in, r = round(c.differs)
			require.Equal(t, []string{status}, Describe(r))
			kind := olmcore.KeyOf(c.differs).Kind
			message := kind + " x exists, is not managed by OLM, and differs from the step in " + c.in + "; label it olm.managed=true to hand it over, or remove it"
			require.Equal(t, "retrying execution due to error: "+message, statusOf(in, r).Message)

			// The failed plan continues once the object is managed, or if the configuration allows the change.
			handed := c.differs.DeepCopyObject().(olmcore.Object)
			handed.SetLabels(map[string]string{"olm.managed": "true"})
			_, r = round(handed)
			require.IsType(t, olmcore.Update{}, r.Actions[0])
			_, r = round(c.differs, func(in *installplan.Input) { in.Config.OverwriteUnmanaged = true })
			require.IsType(t, olmcore.Update{}, r.Actions[0])
			require.Contains(t, Reasons(r), installplan.ReasonUnmanagedObjectUpdated)
			broken := Plan(Failed, []*v1alpha1.Step{c.step}, func(p *v1alpha1.InstallPlan) {
				p.Status.Message = message
				p.Status.Conditions = failedOf(installplan.ReasonStepRefused, message)
			})
			sub := Subscription("a", RefersTo("install-x"))
			OwnedBy(sub)(broken)
			in = input(broken, with(CSV("a.v1"), handed, sub))
			require.Equal(t, Installing, statusOf(in, reconcile(t, in)).Phase)
		})
	}
}

func TestObjectListedBeforeItsVersionIsInstalled(t *testing.T) {
	steps := []*v1alpha1.Step{
		RoleStep("a.v1", "r"),
		Step("a.v1", "", "v1", "ServiceAccount", "s", `{"metadata":{"name":"s"}}`),
		CSVStep("a.v1"),
	}
	in := input(Plan(Installing, steps, Started(time.Second)))
	require.Equal(t, []string{status, "create ClusterServiceVersion ops/a.v1 (StepAbsent)"}, Describe(reconcile(t, in)))
	in = input(in.InstallPlan, with(CSV("a.v1")))
	require.Equal(
		t,
		[]string{status, "create Role ops/r (StepAbsent)", "create ServiceAccount ops/s (StepAbsent)"},
		Describe(reconcile(t, in)),
	)
}

// TestObjectOfADeletedVersionIsNotCreated checks that no object is created for a version that is being deleted. The
// object would be deleted with the version.
func TestObjectOfADeletedVersionIsNotCreated(t *testing.T) {
	clusterRole := Step("a.v1", "rbac.authorization.k8s.io", "v1", "ClusterRole", "c", `{"metadata":{"name":"c"}}`)
	going := CSV("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.DeletionTimestamp = Ago(time.Second) })
	for want, steps := range map[string][]*v1alpha1.Step{
		"waiting for ClusterServiceVersion a.v1":                    {RoleStep("a.v1", "r"), clusterRole},
		"waiting for ClusterServiceVersion a.v1 to finish deleting": {clusterRole},
	} {
		in := input(Plan(Installing, steps, Started(time.Second)), with(going))
		r := reconcile(t, in)
		require.Equal(t, []string{status}, Describe(r))
		require.Equal(t, want, statusOf(in, r).Message)
	}
}

// TestVersionOfAnotherUpgradeChainIsRefused checks that a version is not created if another upgrade chain owns its
// definition. Otherwise both versions would fail with an owner conflict.
func TestVersionOfAnotherUpgradeChainIsRefused(t *testing.T) {
	there := func(name, replaces string, crds ...string) *v1alpha1.ClusterServiceVersion {
		return CSV(name, func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.Replaces = replaces
			for _, crd := range crds {
				c.Spec.CustomResourceDefinitions.Owned = append(c.Spec.CustomResourceDefinitions.Owned, v1alpha1.CRDDescription{Name: crd})
			}
		})
	}
	const crd = "one.example.com"
	going, copied := there("a.v1", "", crd), there("a.v1", "", crd)
	going.DeletionTimestamp = Ago(time.Second)
	copied.Labels = map[string]string{"olm.copiedFrom": "there"}
	beside := func(name string) string {
		return "pre-existing CRD owners found for CRD one.example.com of CSV a.v3, which does not replace " + name
	}
	type versions = []*v1alpha1.ClusterServiceVersion
	for name, c := range map[string]struct { // a.v3 replaces a.v2
		there versions
		want  string
	}{
		"no other version exists":                       {},
		"the version that it replaces":                  {there: versions{there("a.v2", "", crd)}},
		"the predecessor of that version":               {there: versions{there("a.v2", "a.v1", crd), there("a.v1", "", crd)}},
		"the version that replaces it":                  {there: versions{there("a.v4", "a.v3", crd)}},
		"another branch of the upgrade chain":           {there: versions{there("a.v2", "", crd), there("a.v2b", "a.v2", crd)}},
		"one that owns another definition":              {there: versions{there("a.v1", "", "other.example.com")}},
		"one that is being deleted":                     {there: versions{going}},
		"a copy":                                        {there: versions{copied}},
		"an earlier one without a link":                 {there: versions{there("a.v1", "", crd)}, want: beside("a.v1")},
		"one that replaces the same deleted version":    {there: versions{there("a.v2b", "a.v2", crd)}, want: beside("a.v2b")},
		"a later one":                                   {there: versions{there("a.v5", "a.v4", crd)}, want: beside("a.v5")},
		"the version that it replaces, and another one": {there: versions{there("a.v2", "", crd), there("b.v1", "", crd)}, want: beside("b.v1")},
		"one it replaces, which is a copy": {there: versions{func() *v1alpha1.ClusterServiceVersion {
			c := there("a.v2", "", crd)
			c.Labels = copied.Labels
			return c
		}()}},
		"it exists beside an earlier one": {there: versions{there("a.v3", "a.v2", crd), there("a.v1", "", crd)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Step("a.v3", "operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "a.v3", there("a.v3", "a.v2", crd))
			in := input(
				Plan(
					Installing,
					[]*v1alpha1.Step{s, RoleStep("", "r")},
					Started(time.Second),
					func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = []string{"a.v3"} },
				),
			)
			in.ClusterServiceVersions = olmcore.Found(c.there...)
			r := reconcile(t, in)
			if c.want == "" {
				require.NotContains(t, Reasons(r), installplan.ReasonStepRefused)
				return
			}
			require.Equal(t, []string{"updateStatus InstallPlan ops/install-x (PlanProgressed)"}, Describe(r), "no step is applied")
			require.Equal(t, "retrying execution due to error: "+c.want, statusOf(in, r).Message)
		})
	}
}

// TestNewerOfTwoPlansRuns checks two plans: the plan of a for v1 waits for approval when the plan of b is created,
// which installs a v3 that replaces another version. Only the newer one is executed, in any order of approvals.
func TestNewerOfTwoPlansRuns(t *testing.T) {
	for name, newerFirst := range map[string]bool{"the newer one is approved first": true, "the older one is approved first": false} {
		t.Run(name, func(t *testing.T) {
			sub := UserSubscription("a")
			sub.Spec.InstallPlanApproval = v1alpha1.ApprovalManual
			c := World(t, sub)
			driven(t, c, time.Minute, makers(Installs(operatorOf("a", "v1")), Things))
			older := onlyPlan(t, c)
			require.NoError(t, c.Create(UserSubscription("b")))
			next := makers(Installs(operatorOf("a", "v3"), operatorOf("b", "v1")), Things)
			driven(t, c, time.Minute, next)
			newer := planNamed(t, c, fake.Find[*v1alpha1.Subscription](c, NS, "b").Status.InstallPlanRef.Name)

			approved := []*v1alpha1.InstallPlan{older, newer}
			if newerFirst {
				slices.Reverse(approved)
			}
			for _, p := range approved {
				require.NoError(t, fake.Edit(c, NS, p.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
				driven(t, c, 10*time.Minute, next, plans(Things))
			}
			require.Equal(t, Failed, planNamed(t, c, older.Name).Status.Phase)
			require.Equal(t, "superseded by InstallPlan "+newer.Name, planNamed(t, c, older.Name).Status.Message)
			require.Equal(t, Complete, planNamed(t, c, newer.Name).Status.Phase)
			require.NotNil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, NS, "a.v3"))
			require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, NS, "a.v1"))
		})
	}
}
