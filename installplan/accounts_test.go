// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

const accountAnnotation = "olmcore/service-account"

// TestPlanKeepsItsServiceAccount checks that a later OperatorGroup, or a change of the plan, gives the plan no more
// permissions than the ServiceAccount that it was created under.
func TestPlanKeepsItsServiceAccount(t *testing.T) {
	annotated := func(value string) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Annotations = map[string]string{accountAnnotation: value} }
	}
	recorded := func(ref *corev1.ObjectReference) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Status.AttenuatedServiceAccountRef = ref }
	}
	again := olmReference("weak")
	again.UID = "made again"
	renewed := Scoped("weak")
	renewed.Status.ServiceAccountRef = again
	stolen := Scoped("weak")
	stolen.Status.ServiceAccountRef = &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "kube-system", Name: "weak"}
	otherName := Scoped("weak")
	otherName.Status.ServiceAccountRef = olmReference("strong")
	const (
		anew        = "; delete the plan to create it again"
		gone        = "created under service account ops/weak, but the operator group of the namespace names none now" + anew
		replaced    = "created under service account ops/weak, but the operator group of the namespace names ops/strong now" + anew
		unconfirmed = "please make sure the service account exists. sa=weak operatorgroup=ops/group"
	)
	type groups = []*operatorsv1.OperatorGroup
	for name, c := range map[string]struct {
		plan    []func(*v1alpha1.InstallPlan)
		groups  groups
		runsAs  string // "" when it is stopped
		problem string
	}{
		"the group was deleted": {plan: []func(*v1alpha1.InstallPlan){recorded(olmReference("weak"))},
			problem: "no operator group found that is managing this namespace"},
		"another group without an account": {
			plan: []func(*v1alpha1.InstallPlan){recorded(olmReference("weak"))}, groups: groups{Group()}, problem: gone,
		},
		"another group without an account, before it started": {
			plan: []func(*v1alpha1.InstallPlan){annotated("ops/weak")}, groups: groups{Group()}, problem: gone,
		},
		"another account": {
			plan: []func(*v1alpha1.InstallPlan){recorded(olmReference("weak"))}, groups: groups{Scoped("strong")}, problem: replaced,
		},
		"another account, before it started": {
			plan: []func(*v1alpha1.InstallPlan){annotated("ops/weak")}, groups: groups{Scoped("strong")}, problem: replaced,
		},
		"the annotation was changed to the present account": {
			plan: []func(*v1alpha1.InstallPlan){annotated("ops/strong"), recorded(olmReference("weak"))}, groups: groups{Scoped("strong")}, problem: replaced,
		},
		"the annotation was removed": {
			plan: []func(*v1alpha1.InstallPlan){recorded(olmReference("weak"))}, groups: groups{Group()}, problem: gone,
		},
		"the same account": {
			plan: []func(*v1alpha1.InstallPlan){annotated("ops/weak"), recorded(olmReference("weak"))}, groups: groups{Scoped("weak")}, runsAs: "weak",
		},
		"the account was deleted and created again": {
			plan: []func(*v1alpha1.InstallPlan){annotated("ops/weak"), recorded(olmReference("weak"))}, groups: groups{renewed}, runsAs: "weak",
		},
		"a plan of the controller gets an account": {groups: groups{Scoped("weak")}, runsAs: "weak"},
		"a plan of a tenant with another account in its annotation": {
			plan: []func(*v1alpha1.InstallPlan){annotated("kube-system/admin")}, groups: groups{Scoped("weak")}, problem: "created under service account kube-system/admin, but the operator group of the namespace names ops/weak now" + anew,
		},
		"a plan of a tenant with an account in its status": {
			plan: []func(*v1alpha1.InstallPlan){recorded(&corev1.ObjectReference{Namespace: "kube-system", Name: "admin"})}, groups: groups{Scoped("weak")}, problem: "created under service account kube-system/admin, but the operator group of the namespace names ops/weak now" + anew,
		},
		"a group whose status names an account of another namespace": {groups: groups{stolen}, problem: unconfirmed},
		"a group whose status names another account than its spec":   {groups: groups{otherName}, problem: unconfirmed},
		"a plan of a tenant with invisible characters": {
			plan: []func(*v1alpha1.InstallPlan){annotated("ops/\u202eadmin")}, groups: groups{Scoped("weak")},
			problem: `created under service account ops/\u202eadmin, but the operator group of the namespace names ops/weak now` + anew,
		},
	} {
		for phase, approved := range map[v1alpha1.InstallPlanPhase]bool{Installing: true, RequiresApproval: true} {
			t.Run(name+", "+string(phase), func(t *testing.T) {
				p := Plan(phase, []*v1alpha1.Step{RoleStep("", "r")}, c.plan...)
				p.Spec.Approved = approved
				if phase == Installing {
					p.Status.StartTime = Ago(time.Second)
				}
				in := input(p, func(in *installplan.Input) {
					in.OperatorGroups, in.ServiceAccount = olmcore.Found(c.groups...), &corev1.ServiceAccount{ObjectMeta: Meta("weak")}
				})
				for range 3 {
					r := reconcile(t, in)
					next := p.DeepCopy()
					next.Status = statusOf(in, r)
					in.InstallPlan = next
					for _, a := range r.Actions {
						if _, step := a.(olmcore.Create); step {
							require.NotEmpty(t, c.runsAs, "%v", Describe(r))
							require.Equal(t, c.runsAs, a.Identity().Name)
							require.Equal(t, NS, a.Identity().Namespace)
						}
					}
				}
				if c.runsAs == "" {
					require.Equal(t, c.problem, in.InstallPlan.Status.GetCondition(v1alpha1.InstallPlanInstalled).Message)
					require.Equal(t, phase, in.InstallPlan.Status.Phase, "it continues once the group is as before")
					return
				}
				require.Equal(t, c.groups[0].Status.ServiceAccountRef, in.InstallPlan.Status.AttenuatedServiceAccountRef)
				require.Empty(t, in.InstallPlan.Status.Conditions)
			})
		}
	}
}

// TestServiceAccountFollowsOperatorGroups checks the ServiceAccount of a plan for each set of OperatorGroups. It
// includes OLM's cases.
func TestServiceAccountFollowsOperatorGroups(t *testing.T) {
	account := &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: NS, Name: "scoped", UID: "uid-scoped"}
	named := func(name string, namespaces ...string) *operatorsv1.OperatorGroup {
		return Group(func(g *operatorsv1.OperatorGroup) { g.ObjectMeta, g.Status.Namespaces = Meta(name), namespaces })
	}
	targeting := named("targets")
	targeting.Spec.TargetNamespaces = []string{"elsewhere"}
	asked, found := named("asked", NS), named("found", NS)
	asked.Spec.ServiceAccountName, found.Spec.ServiceAccountName = "scoped", "scoped"
	found.Status.ServiceAccountRef = account
	stray := named("stray")
	stray.Spec.ServiceAccountName, stray.Status.ServiceAccountRef = "other", &corev1.ObjectReference{Name: "other"}
	type groups = []*operatorsv1.OperatorGroup
	const noGroup = "no operator group found that is managing this namespace"
	for name, c := range map[string]struct {
		groups  groups
		account *corev1.ObjectReference
		problem string
	}{
		"no group":                                   {problem: noGroup},
		"a group that targets another namespace":     {groups: groups{targeting}, problem: noGroup},
		"a group whose status has another namespace": {groups: groups{named("a", "elsewhere")}},
		"two groups": {
			groups: groups{named("a", NS), named("b", NS)}, problem: "more than one operator group(s) are managing this namespace count=2",
		},
		"three groups, one without namespaces": {
			groups: groups{named("a", NS), named("b"), named("c", "")}, problem: "more than one operator group(s) are managing this namespace count=2",
		},
		"a group without account": {groups: groups{named("a", NS)}},
		"an account that was not found": {
			groups: groups{asked}, problem: "please make sure the service account exists. sa=scoped operatorgroup=ops/asked",
		},
		"an account that was found":                      {groups: groups{found}, account: account},
		"an account, with another group that is ignored": {groups: groups{stray, found}, account: account},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(Plan(RequiresApproval, []*v1alpha1.Step{CSVStep("a.v1")}, func(p *v1alpha1.InstallPlan) {
				p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, false
			}))
			in.OperatorGroups = olmcore.Found(c.groups...)
			want := in.InstallPlan.DeepCopy().Status
			want.AttenuatedServiceAccountRef = c.account
			if c.problem != "" {
				want.Conditions = []v1alpha1.InstallPlanCondition{Condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonInstallCheckFailed, c.problem)}
			}
			Same(t, want, statusOf(in, reconcile(t, in)))
		})
	}
}

// TestPlanWaitsForPermissionsOfItsServiceAccount checks that the controller writes definitions itself. All other
// objects wait without end for the permissions of the ServiceAccount, and are then written. It includes OLM's cases.
func TestPlanWaitsForPermissionsOfItsServiceAccount(t *testing.T) {
	c := World(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: "scoped"}})
	account := fake.Find[*corev1.ServiceAccount](c, NS, "scoped")
	require.NoError(t, fake.Edit(c, NS, "group", func(g *operatorsv1.OperatorGroup) { g.Spec.ServiceAccountName = "scoped" }))
	g := fake.Find[*operatorsv1.OperatorGroup](c, NS, "group").DeepCopy()
	g.Status.ServiceAccountRef = &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: NS, Name: "scoped", UID: account.UID}
	require.NoError(t, c.UpdateStatus(g))
	allowed := map[string]bool{"ClusterServiceVersion": true}
	c.Authorize = func(as *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		if as == nil || allowed[target.Kind] {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, target.Name, fmt.Errorf(
			"User %q cannot %s resource %q in API group %q in the namespace %q", "system:serviceaccount:ops:"+as.Name, verb, "services", "", NS))
	}
	service := written(t, "a.v1", `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}`)
	p := executed(t, c, "install-x", CSVStep("a.v1"), CRDStep("a.v1", "v1"), service)
	d := driven(t, c, time.Hour, plans(installplan.Config{}))

	p = fake.Find[*v1alpha1.InstallPlan](c, NS, p.Name)
	require.Equal(t, Installing, p.Status.Phase)
	require.Equal(t, g.Status.ServiceAccountRef, p.Status.AttenuatedServiceAccountRef)
	require.Contains(t, p.Status.Message, `cannot create resource "services" in API group "" in the namespace "ops"`)
	require.NotNil(t, fake.Find[*apiextensionsv1.CustomResourceDefinition](c, "", "things.example.com"))
	require.Nil(t, fake.Find[*corev1.Service](c, NS, "s"))
	require.Equal(t, []v1alpha1.StepStatus{Created, Created, NotPresent}, Statuses(p.Status))

	allowed["Service"] = true
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	p = fake.Find[*v1alpha1.InstallPlan](c, NS, p.Name)
	require.Equal(t, Complete, p.Status.Phase, p.Status.Message)
	require.Empty(t, p.Status.Message)
	require.NotNil(t, fake.Find[*corev1.Service](c, NS, "s"))
}

// TestStepsRunAsServiceAccountOfOperatorGroup checks creations, updates and deletions. It includes OLM's cases.
func TestStepsRunAsServiceAccountOfOperatorGroup(t *testing.T) {
	bound, scope := scopedTo(&corev1.ObjectReference{Kind: "ServiceAccount", Namespace: NS, Name: "scoped"})
	binding := Step("", "rbac.authorization.k8s.io", "v1", "RoleBinding", "x", `{"metadata":{"name":"x"},"roleRef":{"kind":"Role","name":"new"}}`)
	for want, c := range map[string]struct {
		step *v1alpha1.Step
		have olmcore.Object
	}{
		"create Role ops/r (StepAbsent) as scoped":                        {RoleStep("", "r"), nil},
		"create ClusterServiceVersion ops/a.v1 (StepAbsent) as scoped":    {CSVStep("a.v1"), nil},
		"create CustomResourceDefinition things.example.com (StepAbsent)": {CRDStep("", "v1"), nil},
		"update Role ops/r (StepDiffers) as scoped":                       {RoleStep("", "r"), managed(&rbacv1.Role{ObjectMeta: Meta("r")})},
		"delete RoleBinding ops/x (StepImmutable) as scoped": {
			binding, managed(&rbacv1.RoleBinding{ObjectMeta: Meta("x"), RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "old"}}),
		},
		"create Secret ops/pull (StepAbsent) as scoped":                    {Step("", "", "v1", "Secret", "pull", ""), nil},
		"update CustomResourceDefinition things.example.com (StepDiffers)": {CRDStep("", "v1", "v2"), Installed(CRDObject("v1"), true)},
	} {
		in := input(Plan(Installing, []*v1alpha1.Step{c.step}, Started(time.Second), bound), scope)
		in.ServiceAccount = &corev1.ServiceAccount{ObjectMeta: Meta("scoped")}
		in.PullSecrets = olmcore.Found[*corev1.Secret](&corev1.Secret{ObjectMeta: Meta("pull")}, &corev1.Secret{ObjectMeta: InOLM("pull"), Type: corev1.SecretTypeDockerConfigJson})
		in.CatalogSources = olmcore.Found[*v1alpha1.CatalogSource](pullCatalog("pull"))
		if c.have != nil {
			with(c.have)(&in)
		}
		got := Describe(reconcile(t, in))
		require.Equal(t, want, got[len(got)-1])
	}
}

// TestHandWrittenPlanRunsAsServiceAccountOfOperatorGroup checks that the steps of a plan run as the ServiceAccount that
// the OperatorGroup prescribes, whatever the status of the plan contains.
func TestHandWrittenPlanRunsAsServiceAccountOfOperatorGroup(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io"
	steps := []*v1alpha1.Step{
		CSVStep("a.v1"), RoleStep("", "r"), CRDStep("a.v1", "v1"),
		Step("", rbac, "v1", "ClusterRole", "cr", `{"metadata":{"name":"cr"},"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]}`),
		Step("", rbac, "v1", "ClusterRoleBinding", "crb", `{"metadata":{"name":"crb"},"roleRef":{"apiGroup":"`+rbac+`","kind":"ClusterRole","name":"cr"},"subjects":[{"kind":"User","name":"evil"}]}`),
		Step("", "", "v1", "ServiceAccount", "sa", `{"metadata":{"name":"sa","namespace":"kube-system"}}`),
		Step("", "", "v1", "BundleSecret", "token", `{"metadata":{"name":"token","namespace":"kube-system","annotations":{"kubernetes.io/service-account.name":"admin"}},"type":"kubernetes.io/service-account-token"}`),
		Step("", "scheduling.k8s.io", "v1", "PriorityClass", "pc", `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"pc"},"value":1}`),
	}
	p := Plan(Installing, steps, Started(time.Second), func(p *v1alpha1.InstallPlan) {
		p.Status.AttenuatedServiceAccountRef = olmReference("weak")
		p.Spec.Approved = true
	})
	in := input(p, with(CSV("a.v1")), func(in *installplan.Input) {
		in.OperatorGroups, in.ServiceAccount = olmcore.Found[*operatorsv1.OperatorGroup](Scoped("weak")), &corev1.ServiceAccount{ObjectMeta: Meta("weak")}
	})
	written := 0
	for _, a := range reconcile(t, in).Actions {
		_, target, _ := a.Describe()
		switch target.Kind {
		case "InstallPlan", "CustomResourceDefinition":
			require.Nil(t, a.Identity(), target)
			continue
		}
		written++
		require.NotNil(t, a.Identity(), target)
		require.Equal(t, "weak", a.Identity().Name)
		require.Equal(t, NS, a.Identity().Namespace)
		require.Contains(t, []string{"", NS}, target.Namespace)
	}
	require.Equal(t, 6, written)
	forged := in
	forged.InstallPlan = p.DeepCopy()
	forged.InstallPlan.Status.AttenuatedServiceAccountRef = nil
	for _, a := range reconcile(t, forged).Actions {
		require.IsType(t, olmcore.UpdateStatus{}, a, "the account is recorded first")
	}
}

// TestPlanWaitsForAnOperatorGroup checks that the plan reports the missing OperatorGroup, and that the report is
// removed afterwards. It includes OLM's cases.
func TestPlanWaitsForAnOperatorGroup(t *testing.T) {
	c := World(t)
	g := fake.Find[*operatorsv1.OperatorGroup](c, NS, "group").DeepCopy()
	require.NoError(t, c.Delete(olmcore.RefOf(g).Unversioned()))
	require.NoError(t, c.Load(Plan(RequiresApproval, []*v1alpha1.Step{CSVStep("a.v1")}, func(p *v1alpha1.InstallPlan) {
		p.UID, p.Spec.Approval, p.Spec.Approved = "", v1alpha1.ApprovalManual, false
	})))
	before := onlyPlan(t, c).Status
	d := driven(t, c, time.Minute, plans(installplan.Config{}))
	require.Len(t, onlyPlan(t, c).Status.Conditions, 1)
	require.Equal(t, v1alpha1.InstallPlanReasonInstallCheckFailed, onlyPlan(t, c).Status.Conditions[0].Reason)

	g.UID, g.ResourceVersion = "", ""
	require.NoError(t, c.Create(g))
	require.NoError(t, c.UpdateStatus(g))
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	Same(t, before, onlyPlan(t, c).Status)
	require.NoError(t, fake.Edit(c, NS, "install-x", func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	require.Equal(t, Complete, onlyPlan(t, c).Status.Phase)
}

func TestPullSecretOfAnotherNamespaceIsNotCopied(t *testing.T) {
	in := input(Plan(Installing, []*v1alpha1.Step{Step("", "", "v1", "Secret", "pull", "")}, Started(time.Second)))
	in.PullSecrets = olmcore.Found[*corev1.Secret](&corev1.Secret{ObjectMeta: Meta("pull")})
	require.Equal(t, `retrying execution due to error: secret pull does not exist - secrets "pull" not found`, statusOf(in, reconcile(t, in)).Message)
}

// TestOnlyPullSecretsOfCatalogsAreCopied checks that a plan of a tenant cannot copy other Secrets of OLM's namespace.
func TestOnlyPullSecretsOfCatalogsAreCopied(t *testing.T) {
	going := pullCatalog("pull")
	going.DeletionTimestamp = Ago(0)
	tenants := pullCatalog("pull")
	tenants.Namespace = NS
	for name, c := range map[string]struct {
		kind     corev1.SecretType
		catalogs []*v1alpha1.CatalogSource
		copied   bool
	}{
		"registry credentials that a catalog lists": {
			corev1.SecretTypeDockerConfigJson, []*v1alpha1.CatalogSource{pullCatalog("x", "pull")}, true,
		},
		"registry credentials of the old form": {
			corev1.SecretTypeDockercfg, []*v1alpha1.CatalogSource{pullCatalog("pull")}, true,
		},
		"registry credentials that no catalog lists": {
			corev1.SecretTypeDockerConfigJson, []*v1alpha1.CatalogSource{pullCatalog("x")}, false,
		},
		"registry credentials of a catalog that is being deleted": {corev1.SecretTypeDockerConfigJson, []*v1alpha1.CatalogSource{going}, false},
		"registry credentials that a catalog of a tenant lists":   {corev1.SecretTypeDockerConfigJson, []*v1alpha1.CatalogSource{tenants}, false},
		"a certificate":       {corev1.SecretTypeTLS, []*v1alpha1.CatalogSource{pullCatalog("pull")}, false},
		"a token":             {corev1.SecretTypeServiceAccountToken, []*v1alpha1.CatalogSource{pullCatalog("pull")}, false},
		"a Secret of no type": {"", []*v1alpha1.CatalogSource{pullCatalog("pull")}, false},
		"registry credentials, no catalog at all": {corev1.SecretTypeDockerConfigJson, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(Plan(Installing, []*v1alpha1.Step{Step("", "", "v1", "Secret", "pull", "")}, Started(time.Second)))
			source := InOLM("pull")
			source.Annotations = map[string]string{"no": "no"}
			in.PullSecrets = olmcore.Found[*corev1.Secret](&corev1.Secret{ObjectMeta: source, Type: c.kind, Data: map[string][]byte{"key": []byte("secret")}})
			in.CatalogSources = olmcore.Found(c.catalogs...)
			r := reconcile(t, in)
			if c.copied {
				require.Equal(t, []string{status, "create Secret ops/pull (StepAbsent)"}, Describe(r))
				Same(t, &corev1.Secret{
					TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
					ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: "pull", Labels: map[string]string{"olm.managed": "true"}},
					Type:       c.kind, Data: map[string][]byte{"key": []byte("secret")},
				}, r.Actions[1].(olmcore.Create).Object.(*corev1.Secret))
			} else {
				require.Equal(t, []string{status}, Describe(r))
				require.Equal(t, "retrying execution due to error: secret pull is not a pull secret of any catalog in namespace olm", statusOf(in, r).Message)
			}
			in.Config.CopyAnySecret = true
			require.Equal(t, []string{status, "create Secret ops/pull (StepAbsent)"}, Describe(reconcile(t, in)))

			// A copy that exists already is used.
			in = input(in.InstallPlan, with(&corev1.Secret{ObjectMeta: Meta("pull")}))
			require.Equal(t, Complete, statusOf(in, reconcile(t, in)).Phase)
		})
	}
}
