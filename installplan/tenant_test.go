// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// pullCatalog is a catalog that all namespaces see and that needs a pull Secret.
func pullCatalog(secrets ...string) *v1alpha1.CatalogSource {
	return &v1alpha1.CatalogSource{ObjectMeta: inOLM("cool"), Spec: v1alpha1.CatalogSourceSpec{Secrets: secrets}}
}

// TestOnlyPullSecretsOfCatalogsAreCopied: a tenant's plan names no other Secret of
// OLM's namespace and gets it.
func TestOnlyPullSecretsOfCatalogsAreCopied(t *testing.T) {
	going := pullCatalog("pull")
	going.DeletionTimestamp = ago(0)
	tenants := pullCatalog("pull")
	tenants.Namespace = ns
	for name, c := range map[string]struct {
		kind     corev1.SecretType
		catalogs []*v1alpha1.CatalogSource
		copied   bool
	}{
		"registry credentials that a catalog lists":             {corev1.SecretTypeDockerConfigJson, []*v1alpha1.CatalogSource{pullCatalog("x", "pull")}, true},
		"registry credentials of the old form":                  {corev1.SecretTypeDockercfg, []*v1alpha1.CatalogSource{pullCatalog("pull")}, true},
		"registry credentials that no catalog lists":            {corev1.SecretTypeDockerConfigJson, []*v1alpha1.CatalogSource{pullCatalog("x")}, false},
		"registry credentials that a catalog listed that goes":  {corev1.SecretTypeDockerConfigJson, []*v1alpha1.CatalogSource{going}, false},
		"registry credentials that a catalog of a tenant lists": {corev1.SecretTypeDockerConfigJson, []*v1alpha1.CatalogSource{tenants}, false},
		"a certificate":       {corev1.SecretTypeTLS, []*v1alpha1.CatalogSource{pullCatalog("pull")}, false},
		"a token":             {corev1.SecretTypeServiceAccountToken, []*v1alpha1.CatalogSource{pullCatalog("pull")}, false},
		"a Secret of no type": {"", []*v1alpha1.CatalogSource{pullCatalog("pull")}, false},
		"registry credentials, no catalog at all": {corev1.SecretTypeDockerConfigJson, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "Secret", "pull", "")}, started(time.Second)))
			in.PullSecrets = olmcore.Found[*corev1.Secret](&corev1.Secret{ObjectMeta: inOLM("pull"), Type: c.kind, Data: map[string][]byte{"key": []byte("secret")}})
			in.CatalogSources = olmcore.Found(c.catalogs...)
			r := reconcile(t, in)
			if c.copied {
				require.Equal(t, []string{status, "create Secret ops/pull (StepAbsent)"}, describe(r))
			} else {
				require.Equal(t, []string{status}, describe(r))
				require.Equal(t, "retrying execution due to error: secret pull is no pull secret that a catalog of namespace olm lists", statusOf(in, r).Message)
			}
			in.Config.CopyAnySecret = true
			require.Equal(t, []string{status, "create Secret ops/pull (StepAbsent)"}, describe(reconcile(t, in)))
		})
	}
}

// referenceIn is a step that stands for an object of an unpacked bundle.
func referenceIn(namespace string) *v1alpha1.Step {
	return step("etcd.v1", "operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "etcd.v1", `{"kind":"ConfigMap","name":"`+bundleName+
		`","namespace":"`+namespace+`","catalogSourceName":"cool","catalogSourceNamespace":"`+namespace+`","replaces":"","properties":"{}"}`)
}

// TestAPlanRefersToNoBundleOfAnotherTenant: what was unpacked in another namespace
// is not read, not installed, not unpacked again with the credentials of that
// namespace, and not deleted with the plan.
func TestAPlanRefersToNoBundleOfAnotherTenant(t *testing.T) {
	for namespace, allowed := range map[string]bool{"olm": true, ns: true, "victim": false} {
		t.Run(namespace, func(t *testing.T) {
			cm := filled(map[string]string{"csv.yaml": etcdCSV})
			cm.Namespace, cm.CreationTimestamp = namespace, *ago(100 * time.Hour)
			cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.CatalogSourceCRDAPIVersion, Kind: "CatalogSource", Name: "cool", UID: "x"}}
			p := plan(installing, []*v1alpha1.Step{referenceIn(namespace)}, started(time.Second), func(p *v1alpha1.InstallPlan) {
				l := lookup(t)
				l.CatalogSourceRef = &corev1.ObjectReference{Namespace: namespace, Name: "cool"}
				p.Status.BundleLookups = []v1alpha1.BundleLookup{l}
			})
			in := input(p, func(in *installplan.Input) { in.ConfigMaps = olmcore.Found[*corev1.ConfigMap](cm) })
			r := reconcile(t, in)
			if allowed {
				require.Equal(t, []string{status, "create ClusterServiceVersion ops/etcd.v1 (StepAbsent)"}, describe(r))
			} else {
				require.Equal(t, []string{status}, describe(r))
				require.Contains(t, statusOf(in, r).Message, "no plan of namespace ops may refer to namespace victim")
			}

			in.ConfigMaps = olmcore.Found[*corev1.ConfigMap]()
			lost, err := lostBundles(in)
			require.NoError(t, err)
			require.Equal(t, allowed, len(lost) == 1, "unpacked again")

			bound, of := scopedTo(&corev1.ObjectReference{Kind: "ServiceAccount", Namespace: ns, Name: "scoped"})
			contained := in
			contained.InstallPlan = p.DeepCopy()
			bound(contained.InstallPlan)
			of(&contained)
			contained.ServiceAccount = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "scoped"}}
			lost, err = lostBundles(contained)
			require.NoError(t, err)
			require.Equal(t, namespace == ns, len(lost) == 1, "unpacked again by a plan under an account")

			gathered, err := installplan.Gather(t.Context(), reader(t, p, cm, group()), key, installplan.Config{})
			require.NoError(t, err)
			require.Equal(t, allowed, len(gathered.ConfigMaps.Items) == 1, "read")

			doomed := p.DeepCopy()
			doomed.DeletionTimestamp, doomed.Finalizers = ago(0), []string{installplan.Finalizer}
			r = reconcile(t, input(doomed, func(in *installplan.Input) {
				in.ConfigMaps, in.OtherPlans = olmcore.Found[*corev1.ConfigMap](cm), olmcore.Found[*v1alpha1.InstallPlan]()
			}))
			deletes := 0
			for _, a := range r.Actions {
				if _, ok := a.(olmcore.Delete); ok {
					deletes++
				}
			}
			require.Equal(t, allowed, deletes == 1, "deleted")
		})
	}
	in := input(plan(installing, []*v1alpha1.Step{referenceIn("catalogs")}, started(time.Second)))
	in.Config.GlobalNamespace = "catalogs"
	require.NotContains(t, statusOf(in, reconcile(t, in)).Message, "may refer")
}

// TestAnAliasBombIsRefused quickly, as a manifest.
func TestAnAliasBombIsRefused(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	begin := time.Now()
	in := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "ConfigMap", "x", "metadata: {name: x}\n"+bomb)}, started(time.Second)))
	require.Equal(t, failed, statusOf(in, reconcile(t, in)).Phase)
	require.Less(t, time.Since(begin), 10*time.Second)
}

// TestAForgedHashHidesNoOwner: the key under which OLM notes who brought a
// definition is a hash for which another name is easily found.
func TestAForgedHashHidesNoOwner(t *testing.T) {
	const victim, evil = "8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"
	require.Equal(t, alongsideHash(victim+"/a.v1"), alongsideHash(evil+"/a.v1"))
	in := func(namespace string) *v1alpha1.ClusterServiceVersion {
		return csv("a.v1", versioned("1.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = namespace }))
	}
	have := installed(thing(), true)
	have.Annotations = recordedFor(victim + "/a.v1")
	round := func(have *definition, change ...func(*definition)) olmcore.Result {
		s := step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", thing(change...))
		g := group()
		g.Namespace = evil
		p := plan(installing, []*v1alpha1.Step{s}, started(time.Second), func(p *v1alpha1.InstallPlan) { p.Namespace = evil })
		return reconcile(t, input(p, func(all *installplan.Input) {
			all.OperatorGroups, all.ClusterServiceVersions = olmcore.Found(g), olmcore.Found(in(evil))
			all.Alongside, all.CustomResourceDefinitions = olmcore.Found(in(victim)), olmcore.Found(have)
		}))
	}
	r := round(have)
	require.Len(t, r.Actions, 1)
	after := r.Actions[0].(olmcore.Update).After.(*definition)
	noted := map[string]string{}
	for key, value := range after.Annotations {
		if strings.HasPrefix(key, alongside) {
			noted[value] = strings.TrimPrefix(key, alongside)
		}
	}
	hash := alongsideHash(victim + "/a.v1")
	require.Equal(t, hash, noted[victim+"/a.v1"])
	require.Regexp(t, "^"+hash+"-[a-z0-9]{20}$", noted[evil+"/a.v1"])
	require.Empty(t, validation.IsQualifiedName(alongside+noted[evil+"/a.v1"]))

	// It is noted once, and the other still owns the definition.
	for _, r := range []olmcore.Result{round(after), round(after, convertedBy("evil", "eavesdropper"))} {
		require.Len(t, r.Actions, 1)
		require.IsType(t, olmcore.UpdateStatus{}, r.Actions[0])
	}
}

// TestWhatIsRecordedOnADefinitionHasBounds: a plan records names of versions only, which
// others look up, and no more of them than leave room for those of others.
func TestWhatIsRecordedOnADefinitionHasBounds(t *testing.T) {
	made := func(have *definition, names ...string) (installplan.Input, olmcore.Result) {
		var steps []*v1alpha1.Step
		for _, name := range names {
			steps = append(steps, step(name, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", thing()))
		}
		in := input(plan(installing, steps, started(time.Second)))
		if have != nil {
			in.CustomResourceDefinitions = olmcore.Found[*definition](have)
		}
		return in, reconcile(t, in)
	}
	names := make([]string, 21)
	for i := range names {
		names[i] = fmt.Sprintf("a.v%d", i)
	}
	theirs := installed(thing(), true)
	theirs.Annotations = recordedFor("there/b.v1")
	full := installed(thing(), true)
	full.Annotations = recordedFor()
	var versions []*v1alpha1.ClusterServiceVersion
	for _, name := range names[:20] {
		maps.Copy(full.Annotations, recordedFor("ops/"+name))
		versions = append(versions, csv(name, versioned("1.0.0")))
	}
	for what, have := range map[string]*definition{"new": nil, "another's": theirs} {
		for _, name := range []string{"a/../../secrets", "a%2e", "A", strings.Repeat("a", 300)} {
			in, r := made(have, name)
			require.Equal(t, []string{status}, describe(r), what)
			require.Contains(t, statusOf(in, r).Message, "is no name of a ClusterServiceVersion", what)
		}
		in, r := made(have, names...)
		require.Equal(t, []string{status}, describe(r), what)
		require.Contains(t, statusOf(in, r).Message, "is made for 21 versions; there is room for 20", what)
		_, r = made(have, names[:20]...)
		require.Contains(t, describe(r)[len(r.Actions)-1], "CustomResourceDefinition things.example.com (", what)
	}
	in, _ := made(full, names[20])
	in.ClusterServiceVersions = olmcore.Found(versions...)
	r := reconcile(t, in)
	require.Equal(t, []string{status}, describe(r))
	require.Contains(t, statusOf(in, r).Message, "records 21 versions of namespace ops; there is room for 20")

	// A record that was forged, or is OLM's, keeps no other plan from being read.
	full.Annotations = recordedFor("evil/a/../b", "evil/A", "EVIL/a", "evil/a.v1")
	in, _ = made(full, "a.v1")
	asked := &asking{Reader: reader(t, in.InstallPlan, full, group())}
	_, err := installplan.Gather(t.Context(), asked, key, installplan.Config{})
	require.NoError(t, err)
	require.Equal(t, []string{"evil/a.v1", "ops/a.v1"}, asked.versions)
}

// asking notes which ClusterServiceVersions are asked for.
type asking struct {
	olmcore.Reader
	versions []string
}

func (r *asking) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if gvk.Kind == v1alpha1.ClusterServiceVersionKind && !slices.Contains(r.versions, namespace+"/"+name) {
		r.versions = append(r.versions, namespace+"/"+name)
	}
	return r.Reader.Get(ctx, gvk, namespace, name)
}

// TestADefinitionIsProtectedBeforeItsVersionIsThere: definitions come first in a plan.
// Until the version follows, a plan of another namespace may take as little from it as
// later, and leaves the record.
func TestADefinitionIsProtectedBeforeItsVersionIsThere(t *testing.T) {
	have := installed(thing(), true)
	have.Annotations = recordedFor("there/b.v1")
	theirs := func(phase v1alpha1.InstallPlanPhase, names ...string) *v1alpha1.InstallPlan {
		return plan(phase, nil, func(p *v1alpha1.InstallPlan) {
			p.Namespace, p.Name, p.Spec.ClusterServiceVersionNames = "there", "theirs", names
		})
	}
	retried := theirs(v1alpha1.InstallPlanPhaseFailed, "b.v1")
	retried.Status.Conditions = []v1alpha1.InstallPlanCondition{{Type: installplan.ConditionRetrying, Status: corev1.ConditionTrue}}
	for name, c := range map[string]struct {
		plan  *v1alpha1.InstallPlan
		owner bool
	}{
		"their plan runs":            {theirs(installing, "b.v1"), true},
		"their plan waits":           {theirs(v1alpha1.InstallPlanPhaseRequiresApproval, "x.v1", "b.v1"), true},
		"their plan is tried again":  {retried, true},
		"their plan is for another":  {theirs(installing, "x.v1"), false},
		"their plan is over":         {theirs(v1alpha1.InstallPlanPhaseComplete, "b.v1"), false},
		"their plan has failed":      {theirs(v1alpha1.InstallPlanPhaseFailed, "b.v1"), false},
		"their plan was never there": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			round := func(change ...func(*definition)) (installplan.Input, olmcore.Result) {
				s := step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", thing(change...))
				objects := []olmcore.Object{plan(installing, []*v1alpha1.Step{s}, started(time.Second)), have, group(), csv("a.v1", versioned("1.0.0"))}
				if c.plan != nil {
					objects = append(objects, c.plan)
				}
				in, err := installplan.Gather(t.Context(), reader(t, objects...), key, installplan.Config{})
				require.NoError(t, err)
				in.Now = noon
				return in, reconcile(t, in)
			}
			in, r := round(convertedBy("evil", "eavesdropper"))
			require.Equal(t, c.owner, strings.Contains(statusOf(in, r).Message, "is owned by there/b.v1 too"))
			_, r = round(specOf(func(s *props) { s.Properties["more"] = props{Type: "string"} }))
			require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, describe(r))
			_, kept := r.Actions[0].(olmcore.Update).After.GetAnnotations()[alongside+alongsideHash("there/b.v1")]
			require.Equal(t, c.owner, kept)
		})
	}
}

// TestATenantsPlanShowsNothingOfOthersResources: findings about custom resources hold
// values of them, and whoever reads the plan may not be allowed to read these.
func TestATenantsPlanShowsNothingOfOthersResources(t *testing.T) {
	narrower := thing(field("image", func(s *props) { s.MaxLength = new(int64(1)) }))
	s := step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", narrower)
	bad := func(namespace string) installplan.ResourceVerdict {
		return installplan.ResourceVerdict{CustomResourceDefinition: "things.example.com", Version: "v1", Namespace: namespace, Name: "name-of-one",
			New: []string{`Invalid value: "secret"`}}
	}
	account := &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: ns, Name: "scoped"}
	bound, of := scopedTo(account)
	have := installed(thing(), true)
	have.Annotations = recordedFor("ops/a.v1")
	round := func(verdict installplan.ResourceVerdict, bind bool) string {
		in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1", versioned("1.0.0")), have.DeepCopy()))
		if bind {
			bound(in.InstallPlan)
			of(&in)
			in.ServiceAccount = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "scoped"}}
		}
		in.CustomResources = olmcore.Found[installplan.ResourceVerdict](verdict)
		return statusOf(in, reconcile(t, in)).Message
	}
	const prefix = `retrying execution due to error: error validating existing CRs against new CRD's schema for "things.example.com": error validating example.com/v1, Kind=Thing `
	require.Equal(t, prefix+`"of another namespace": updated validation is too restrictive: (not shown)`, round(bad("victim"), true))
	require.Equal(t, prefix+`"of another namespace": updated validation is too restrictive: (not shown)`, round(bad(""), true))
	require.Equal(t, prefix+`"ops/name-of-one": updated validation is too restrictive: Invalid value: "secret"`, round(bad(ns), true))
	require.Equal(t, prefix+`"victim/name-of-one": updated validation is too restrictive: Invalid value: "secret"`, round(bad("victim"), false))

	// Where the definition is another operator's, they are not read.
	have.Annotations = recordedFor("victim/b.v1")
	theirs := csv("b.v1", versioned("1.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "victim" }))
	in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1", versioned("1.0.0")), have, theirs))
	changes, err := schemaChanges(in)
	require.NoError(t, err)
	require.Empty(t, changes)
}

// TestAForgedNewerVersionHoldsNoSchemaBack: a version of another namespace that
// calls itself a newer one of the package keeps no field from the operator.
func TestAForgedNewerVersionHoldsNoSchemaBack(t *testing.T) {
	more := specOf(func(s *props) { s.Properties["more"] = props{Type: "string"} })
	have := installed(thing(), true)
	have.Annotations = recordedFor("evil/a.v9")
	forged := csv("a.v9", versioned("9.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "evil" }))
	s := step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", thing(more))
	r := reconcile(t, input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1", versioned("1.0.0")), have, forged)))
	require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, describe(r))
	require.Equal(t, thing(more).Spec.Versions, r.Actions[0].(olmcore.Update).After.(*definition).Spec.Versions)
	require.NotContains(t, reasons(r), installplan.ReasonNewerCRDKept)
}

// TestAPlanWrittenByHandHasTheRightsOfTheGroup: whatever its status says, its
// steps run as the account that the administrator's group prescribes.
func TestAPlanWrittenByHandHasTheRightsOfTheGroup(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io"
	steps := []*v1alpha1.Step{
		csvStep("a.v1"), roleStep("", "r"), crdStep("a.v1", "v1"),
		step("", rbac, "v1", "ClusterRole", "cr", `{"metadata":{"name":"cr"},"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]}`),
		step("", rbac, "v1", "ClusterRoleBinding", "crb", `{"metadata":{"name":"crb"},"roleRef":{"apiGroup":"`+rbac+`","kind":"ClusterRole","name":"cr"},"subjects":[{"kind":"User","name":"evil"}]}`),
		step("", "", "v1", "ServiceAccount", "sa", `{"metadata":{"name":"sa","namespace":"kube-system"}}`),
		step("", "", "v1", "BundleSecret", "token", `{"metadata":{"name":"token","namespace":"kube-system","annotations":{"kubernetes.io/service-account.name":"admin"}},"type":"kubernetes.io/service-account-token"}`),
		step("", "scheduling.k8s.io", "v1", "PriorityClass", "pc", `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"pc"},"value":1}`),
	}
	p := plan(installing, steps, started(time.Second), func(p *v1alpha1.InstallPlan) {
		p.Status.AttenuatedServiceAccountRef = olmReference("weak")
		p.Spec.Approved = true
	})
	in := input(p, with(csv("a.v1")), func(in *installplan.Input) {
		in.OperatorGroups, in.ServiceAccount = olmcore.Found[*operatorsv1.OperatorGroup](scoped("weak")), &corev1.ServiceAccount{ObjectMeta: meta("weak")}
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
		require.Equal(t, ns, a.Identity().Namespace)
		require.Contains(t, []string{"", ns}, target.Namespace)
	}
	require.Equal(t, 6, written)
	forged := in
	forged.InstallPlan = p.DeepCopy()
	forged.InstallPlan.Status.AttenuatedServiceAccountRef = nil
	for _, a := range reconcile(t, forged).Actions {
		require.IsType(t, olmcore.UpdateStatus{}, a, "the account is recorded first")
	}
}

// TestPlanOfTooManyBundlesReadsNone, and fails.
func TestPlanOfTooManyBundlesReadsNone(t *testing.T) {
	var steps []*v1alpha1.Step
	for i := range 101 {
		s := referenceIn(ns)
		s.Resource.Manifest = strings.Replace(s.Resource.Manifest, bundleName, fmt.Sprintf("%s%03d", bundleName[3:], i), 1)
		steps = append(steps, s)
	}
	r := reader(t, plan(installing, steps, started(time.Second)), group())
	in, err := installplan.Gather(t.Context(), r, key, installplan.Config{})
	require.NoError(t, err)
	require.Zero(t, r.Kinds["ConfigMap"])
	in.Now = noon
	require.Equal(t, failed, statusOf(in, reconcile(t, in)).Phase)
	in.InstallPlan = plan(installing, steps[:100], started(time.Second))
	require.Equal(t, installing, statusOf(in, reconcile(t, in)).Phase)
}
