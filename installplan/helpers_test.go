// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/installplan/unpack"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/olmcore/decode"
)

func input(p *v1alpha1.InstallPlan, change ...func(*installplan.Input)) installplan.Input {
	in := installplan.Input{
		Now: Noon, InstallPlan: p, Subscriptions: olmcore.Found[*v1alpha1.Subscription](), OperatorGroups: olmcore.Found(Group()),
		RelatedPlans:              olmcore.Found[*v1alpha1.InstallPlan](),
		ClusterServiceVersions:    olmcore.Found[*v1alpha1.ClusterServiceVersion](),
		CustomResourceDefinitions: olmcore.Found[*apiextensionsv1.CustomResourceDefinition](),
		APIServices:               olmcore.Found[*apiregistrationv1.APIService](),
		Alongside:                 olmcore.Found[*v1alpha1.ClusterServiceVersion](), Objects: olmcore.Found[olmcore.Object](),
		ConfigMaps: olmcore.Found[*corev1.ConfigMap](), PullSecrets: olmcore.Found[*corev1.Secret](), CatalogSources: olmcore.Found[*v1alpha1.CatalogSource](),
	}
	for _, f := range change {
		f(&in)
	}
	return in
}

func with(objects ...olmcore.Object) func(*installplan.Input) {
	return func(in *installplan.Input) {
		for _, o := range objects {
			switch x := o.(type) {
			case *v1alpha1.Subscription:
				in.Subscriptions.Items = append(in.Subscriptions.Items, x)
			case *v1alpha1.ClusterServiceVersion:
				if x.Namespace == NS {
					in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, x)
				} else {
					in.Alongside.Items = append(in.Alongside.Items, x)
				}
			case *apiextensionsv1.CustomResourceDefinition:
				in.CustomResourceDefinitions.Items = append(in.CustomResourceDefinitions.Items, x)
			case *apiregistrationv1.APIService:
				in.APIServices.Items = append(in.APIServices.Items, x)
			default:
				in.Objects.Items = append(in.Objects.Items, o)
			}
		}
	}
}

// reconcileResult returns the Result of Reconcile.
func reconcileResult(in installplan.Input) (olmcore.Result, error) {
	out, err := installplan.Reconcile(in)
	return out.Result, err
}

func schemaChanges(in installplan.Input) ([]installplan.SchemaChange, error) {
	out, err := installplan.Reconcile(in)
	return out.SchemaChanges, err
}

func lostBundles(in installplan.Input) ([]v1alpha1.BundleLookup, error) {
	out, err := installplan.Reconcile(in)
	return out.LostBundles, err
}

func reconcile(t testing.TB, in installplan.Input) olmcore.Result {
	t.Helper()
	result, err := reconcileResult(in)
	require.NoError(t, err)
	return result
}

func assess(t require.TestingT, in installplan.Input) installplan.Assessment {
	a, err := installplan.Assess(in)
	require.NoError(t, err)
	return a
}

// statusOf returns the status that the actions write, or that of the plan if they write none.
func statusOf(in installplan.Input, r olmcore.Result) v1alpha1.InstallPlanStatus {
	if p, ok := olmcore.StatusOf[*v1alpha1.InstallPlan](r.Actions); ok {
		return p.Status
	}
	return in.InstallPlan.Status
}

// plans returns the controller of this package alone.
func plans(config installplan.Config) controller.Controller {
	return plansWith(config, func(context.Context, olmcore.Reader, time.Time, *installplan.Outcome) error { return nil })
}

// plansWith returns the controller of this package, which also calls a function with each Outcome.
func plansWith(
	config installplan.Config,
	besides func(context.Context, olmcore.Reader, time.Time, *installplan.Outcome) error,
) controller.Controller {
	kind := v1alpha1.SchemeGroupVersion.WithKind("InstallPlan")
	return controller.Controller{
		Name: "installplan", Kinds: []schema.GroupVersionKind{kind},
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
			in, err := installplan.Gather(ctx, r, key, config)
			if err != nil {
				return olmcore.Result{}, err
			}
			in.Now, in.LastRun = now, last
			out, err := installplan.Reconcile(in)
			if err == nil {
				err = besides(ctx, r, now, &out)
			}
			return out.Result, err
		},
	}
}

// driven runs controllers over a cluster for some time, or until they converge if the time is 0.
func driven(t require.TestingT, c *fake.Cluster, d time.Duration, controllers ...controller.Controller) *fake.Driver {
	driver := &fake.Driver{Cluster: c, Controllers: controllers}
	if d == 0 {
		require.NoError(t, driver.Settle(context.Background()))
	} else {
		require.NoError(t, driver.RunFor(context.Background(), d))
	}
	return driver
}

// makers returns a controller that creates plans of one resolution, and writes the references of its Subscriptions as
// package subscription does.
func makers(resolution func(subs []*v1alpha1.Subscription) olmcore.Resolution, config installplan.Config) controller.Controller {
	return makersOf(config, func(ctx context.Context, r olmcore.Reader, namespace string) (olmcore.Resolution, error) {
		subs, err := olmcore.List[*v1alpha1.Subscription](ctx, r, namespace, nil)
		return resolution(subs), err
	})
}

func makersOf(
	config installplan.Config,
	resolve func(ctx context.Context, r olmcore.Reader, namespace string) (olmcore.Resolution, error),
) controller.Controller {
	kind := v1alpha1.SchemeGroupVersion.WithKind("Subscription")
	return controller.Controller{
		Name: "maker", Kinds: []schema.GroupVersionKind{kind}, KeysOf: controller.NamespaceKey,
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
			resolution, err := resolve(ctx, r, key.Namespace)
			if err != nil {
				return olmcore.Result{}, err
			}
			in, err := create.Gather(ctx, r, key.Namespace, resolution, config)
			if err != nil {
				return olmcore.Result{}, err
			}
			in.Now = now
			out, err := create.Plan(in)
			return Refer(in, out), err
		},
	}
}

func alongsideHash(s string) string {
	h := fnv.New64a()
	h.Write([]byte(s))
	return fmt.Sprintf("%x", h.Sum64())
}

// written returns the step of a manifest in YAML, as bundles contain it.
func written(t testing.TB, resolving, manifest string) *v1alpha1.Step {
	t.Helper()
	o := parsed(t, manifest)
	gvk := olmcore.GVKOf(o)
	if gvk.Kind == "Secret" {
		gvk.Kind = "BundleSecret"
	}
	data, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(t, err)
	return Step(resolving, gvk.Group, gvk.Version, gvk.Kind, o.GetName(), string(data))
}

func parsed(t testing.TB, manifest string) olmcore.Object {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(t, err)
	o, err := decode.Decode(data)
	require.NoError(t, err)
	return o
}

// executed runs a plan of these steps over existing objects, and returns the final plan.
func executed(t testing.TB, c *fake.Cluster, name string, steps ...*v1alpha1.Step) *v1alpha1.InstallPlan {
	t.Helper()
	p := Plan(Installing, steps, func(p *v1alpha1.InstallPlan) { p.Name, p.UID = name, "" })
	require.NoError(t, c.Load(p))
	driven(t, c, 2*time.Minute, plans(installplan.Config{}))
	return fake.Find[*v1alpha1.InstallPlan](c, NS, name)
}

const alongside = "operatorframework.io/installed-alongside-"

// recordedFor returns the annotations of a definition that records versions.
func recordedFor(versions ...string) map[string]string {
	annotations := map[string]string{}
	for _, v := range versions {
		annotations[alongside+alongsideHash(v)] = v
	}
	return annotations
}

func scopedTo(account *corev1.ObjectReference) (func(*v1alpha1.InstallPlan), func(*installplan.Input)) {
	return func(p *v1alpha1.InstallPlan) { p.Status.AttenuatedServiceAccountRef = account },
		func(in *installplan.Input) {
			in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup](Group(func(g *operatorsv1.OperatorGroup) {
				g.Spec.ServiceAccountName, g.Status.ServiceAccountRef = account.Name, account
			}))
		}
}

// ran returns the results of a run that wrote a Role.
func ran(name string) olmcore.LastResults {
	return olmcore.LastResults{{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: NS, Name: name}: {Count: 1}}
}

// unpackingAgain returns the controller of plans that also unpacks lost bundles.
func unpackingAgain(config installplan.Config) controller.Controller {
	return plansWith(config, func(ctx context.Context, r olmcore.Reader, now time.Time, plan *installplan.Outcome) error {
		for _, lookup := range plan.LostBundles {
			in, err := unpack.Gather(ctx, r, NS, lookup, config)
			if err != nil {
				return err
			}
			in.Now = now
			out, err := unpack.Bundle(in)
			if err != nil {
				return err
			}
			plan.Actions = append(plan.Actions, out.Actions...)
			plan.Requeue(out.RequeueAfter)
		}
		return nil
	})
}

const stepHash = "olmcore/step-hash"

// update returns what the plan of one step makes of an observed object; its mark is taken off.
func update[T olmcore.Object](t *testing.T, s *v1alpha1.Step, observed T, others ...olmcore.Object) (T, olmcore.Result) {
	t.Helper()
	r := reconcile(t, input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1"), observed), with(others...)))
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
	t.Fatalf("no update in %v", Describe(r))
	return observed, r
}

func managed(o olmcore.Object) olmcore.Object {
	o.SetLabels(map[string]string{"olm.managed": "true", "theirs": "kept"})
	o.SetAnnotations(map[string]string{"theirs": "kept", "ours": "old"})
	o.SetFinalizers([]string{"theirs"})
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "theirs"}})
	return o
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

type (
	definition = apiextensionsv1.CustomResourceDefinition
	props      = apiextensionsv1.JSONSchemaProps
)

// thing returns the definition of another operator, with a field of each type.
func thing(change ...func(*definition)) *definition {
	crd := CRDObject("v1")
	*schemaIn(crd) = props{Type: "object", Required: []string{"spec"}, Properties: map[string]props{
		"spec": {Type: "object", Properties: map[string]props{
			"image": {
				Type:      "string",
				MaxLength: new(int64(100)),
			}, "mode": {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`"b"`)}}},
			"count": {Type: "integer", Minimum: new(1.0), Nullable: true},
			"list":  {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &props{Type: "string"}}},
			"map":   {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &props{Type: "string"}}},
			"free":  {Type: "object", XPreserveUnknownFields: new(true)},
		}},
	}}
	for _, f := range change {
		f(crd)
	}
	return crd
}

func schemaIn(crd *definition) *props { return crd.Spec.Versions[0].Schema.OpenAPIV3Schema }

// field returns a function that changes a field of the spec of things.
func field(name string, change func(*props)) func(*definition) {
	return func(crd *definition) {
		spec := schemaIn(crd).Properties["spec"]
		f := spec.Properties[name]
		change(&f)
		spec.Properties[name] = f
	}
}

func convertedBy(namespace, service string) func(*definition) {
	return func(crd *definition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1"},
				ClientConfig: &apiextensionsv1.WebhookClientConfig{CABundle: []byte("of " + service),
					Service: &apiextensionsv1.ServiceReference{Namespace: namespace, Name: service}},
			},
		}
	}
}

// monitoring returns the CustomResourceDefinitions that published bundles require.
func monitoring() []olmcore.Object {
	var out []olmcore.Object
	for kind, plural := range map[string]string{"ServiceMonitor": "servicemonitors", "PrometheusRule": "prometheusrules"} {
		crd := CRDObject("v1")
		crd.Name = plural + ".monitoring.coreos.com"
		crd.Spec.Group = "monitoring.coreos.com"
		crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural, ListKind: kind + "List", Singular: kind}
		out = append(out, crd)
	}
	return out
}

// other returns a function that gives a version of a definition another schema.
func other(crd *apiextensionsv1.CustomResourceDefinition, versions ...int) *apiextensionsv1.CustomResourceDefinition {
	for _, i := range versions {
		crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Description = "other"
	}
	return crd
}

func unserved(crd *apiextensionsv1.CustomResourceDefinition, i int) *apiextensionsv1.CustomResourceDefinition {
	crd.Spec.Versions[i].Served = false
	return crd
}

// marked returns an object with the hash annotation of another plan.
func marked(o olmcore.Object) olmcore.Object {
	annotations, _ := olmcore.MergeMaps(o.GetAnnotations(), map[string]string{"olmcore/step-hash": "theirs"})
	o.SetAnnotations(annotations)
	return o
}

func verbs(r olmcore.Result) []string {
	var out []string
	for _, a := range r.Actions {
		verb, _, _ := a.Describe()
		out = append(out, string(verb))
	}
	return out
}

const status = "updateStatus InstallPlan ops/install-x (PlanProgressed)"

// applied returns the object that a plan of this step would have created.
func applied(t *testing.T, s *v1alpha1.Step, others ...olmcore.Object) olmcore.Object {
	t.Helper()
	s = s.DeepCopy()
	s.Status = Unknown
	in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(others...))
	for _, a := range reconcile(t, in).Actions {
		if c, ok := a.(olmcore.Create); ok {
			o := c.Object.DeepCopyObject().(olmcore.Object)
			o.SetUID("uid-made")
			o.SetResourceVersion("1")
			o.SetCreationTimestamp(Born)
			if crd, ok := o.(*apiextensionsv1.CustomResourceDefinition); ok {
				crd.Status = Installed(CRDObject("v1"), true).Status
			}
			return o
		}
	}
	t.Fatal("nothing was made")
	return nil
}

// follows returns a Subscription to a package that references a plan.
func follows(name, plan string, generation int) *v1alpha1.Subscription {
	s := Subscription(name, RefersTo(plan))
	s.Status.InstallPlanGeneration = generation
	return s
}

func operatorOf(pkg, v string) olmcore.Operator {
	o := Operator(pkg)
	o.Name, o.Version = pkg+"."+v, v
	o.Bundle.Objects[0] = CSV(o.Name, func(c *v1alpha1.ClusterServiceVersion) { c.ObjectMeta = metav1.ObjectMeta{Name: o.Name} })
	return o
}

func planNamed(t *testing.T, c *fake.Cluster, name string) *v1alpha1.InstallPlan {
	p := fake.Find[*v1alpha1.InstallPlan](c, NS, name)
	require.NotNil(t, p)
	return p
}

// pullCatalog returns a catalog that all namespaces see and that needs a pull Secret.
func pullCatalog(secrets ...string) *v1alpha1.CatalogSource {
	return &v1alpha1.CatalogSource{ObjectMeta: InOLM("cool"), Spec: v1alpha1.CatalogSourceSpec{Secrets: secrets}}
}

// failedOf returns the conditions of a plan that this library failed.
func failedOf(reason, message string) []v1alpha1.InstallPlanCondition {
	return []v1alpha1.InstallPlanCondition{
		Condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonComponentFailed, message), stalled(reason, message),
	}
}

// stalled returns the condition Progressing of a plan that does not progress.
func stalled(reason, message string) v1alpha1.InstallPlanCondition {
	c := Condition(corev1.ConditionFalse, v1alpha1.InstallPlanConditionReason(reason), message)
	c.Type = installplan.ConditionProgressing
	return c
}
