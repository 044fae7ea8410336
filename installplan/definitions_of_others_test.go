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

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

func specOf(change func(*props)) func(*definition) {
	return func(crd *definition) {
		spec := schemaIn(crd).Properties["spec"]
		change(&spec)
		schemaIn(crd).Properties["spec"] = spec
	}
}

func secondVersion(storage bool, change ...func(*definition)) func(*definition) {
	return func(crd *definition) {
		next := *crd.Spec.Versions[0].DeepCopy()
		next.Name, next.Storage = "v2", storage
		alone := &definition{}
		alone.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{next}
		for _, f := range change {
			f(alone)
		}
		crd.Spec.Versions[0].Storage = !storage
		crd.Spec.Versions = append(crd.Spec.Versions, alone.Spec.Versions...)
	}
}

const inVersion = "spec.versions[v1].schema.openAPIV3Schema"

// asking is a Reader that records which ClusterServiceVersions are read.
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

// TestDefinitionOfAnotherOwnerIsNotNarrowed checks that a plan takes nothing away from an operator of another namespace
// that owns the same definition. Additions are written.
func TestDefinitionOfAnotherOwnerIsNotNarrowed(t *testing.T) {
	const inSpec = inVersion + ".properties[spec]"
	for name, c := range map[string]struct {
		change  func(*definition)
		have    func(*definition)
		refused string
	}{
		"a conversion webhook": {change: convertedBy("evil", "eavesdropper"), refused: "spec.conversion"},
		"another conversion webhook": {
			have: convertedBy("there", "b"), change: convertedBy("evil", "eavesdropper"), refused: "spec.conversion",
		},
		"no conversion webhook any more": {have: convertedBy("there", "b"), change: func(*definition) {}, refused: "spec.conversion"},
		"a URL to convert at": {change: func(crd *definition) {
			convertedBy("", "")(crd)
			crd.Spec.Conversion.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: new("https://evil.example.com")}
		}, refused: "spec.conversion"},
		"short names":          {change: func(crd *definition) { crd.Spec.Names.ShortNames = []string{"po"} }, refused: "spec.names"},
		"a version is removed": {have: secondVersion(false), change: func(*definition) {}, refused: "spec.versions[v2] (removed)"},
		"a version is no longer served": {
			have: secondVersion(false), change: func(crd *definition) { secondVersion(false)(crd); crd.Spec.Versions[1].Served = false }, refused: "spec.versions[v2].served",
		},
		"a status subresource": {change: func(crd *definition) {
			crd.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
		}, refused: "spec.versions[v1].subresources"},
		"a field is removed": {
			change: specOf(func(s *props) { delete(s.Properties, "image") }), refused: inSpec + ".properties[image]",
		},
		"a field is required": {change: specOf(func(s *props) { s.Required = []string{"image"} }), refused: inSpec + ".required"},
		"another default": {
			change: field("image", func(s *props) { s.Default = &apiextensionsv1.JSON{Raw: []byte(`"evil/image"`)} }), refused: inSpec + ".properties[image].default",
		},
		"another type": {
			change: field("image", func(s *props) { s.Type = "integer" }), refused: inSpec + ".properties[image] (validation)",
		},
		"a pattern": {
			change: field("image", func(s *props) { s.Pattern = "^evil/" }), refused: inSpec + ".properties[image] (validation)",
		},
		"a lower bound": {
			change: field("image", func(s *props) { s.MaxLength = new(int64(10)) }), refused: inSpec + ".properties[image] (validation)",
		},
		"fewer values": {
			change: field("mode", func(s *props) { s.Enum = s.Enum[:1] }), refused: inSpec + ".properties[mode].enum",
		},
		"null is rejected": {
			change: field("count", func(s *props) { s.Nullable = false }), refused: inSpec + ".properties[count] (validation)",
		},
		"a rule": {
			change: specOf(func(s *props) { s.XValidations = apiextensionsv1.ValidationRules{{Rule: "false"}} }), refused: inSpec + ".x-kubernetes-validations",
		},
		"entries of another type": {
			change: field("list", func(s *props) { s.Items.Schema.Type = "integer" }), refused: inSpec + ".properties[list].items (validation)",
		},
		"values of another type": {
			change: field("map", func(s *props) { s.AdditionalProperties.Schema.Type = "integer" }), refused: inSpec + ".properties[map].additionalProperties (validation)",
		},
		"unknown fields are dropped": {
			change: field("free", func(s *props) { s.XPreserveUnknownFields = nil }), refused: inSpec + ".properties[free] (validation)",
		},
		"unknown fields are validated": {
			change: field("free", func(s *props) { s.Properties = map[string]props{"a": {Type: "integer"}} }), refused: inSpec + ".properties[free].properties",
		},
		"unknown fields are kept": {
			change: func(crd *definition) { crd.Spec.PreserveUnknownFields = true }, refused: "spec.preserveUnknownFields",
		},
		"entries of any type": {
			change: field("list", func(s *props) { s.Items = nil }), refused: inSpec + ".properties[list].items",
		},
		"no values but named ones": {
			change: field("map", func(s *props) { s.AdditionalProperties = nil }), refused: inSpec + ".properties[map].additionalProperties",
		},
		"no values at all": {
			change: field("map", func(s *props) { s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{} }), refused: inSpec + ".properties[map].additionalProperties",
		},
		"another version is stored, narrower": {
			change: secondVersion(true, specOf(func(s *props) { s.Properties = nil })), refused: "spec.versions[v2].schema.openAPIV3Schema.properties[spec].properties[count] (stored instead of v1)",
		},
		"another version is stored that the webhook may not know": {
			have: convertedBy("there", "b"), change: func(crd *definition) { convertedBy("there", "b")(crd); secondVersion(true)(crd) }, refused: "spec.versions[v2].storage",
		},

		"nothing":                   {change: func(*definition) {}},
		"another field":             {change: specOf(func(s *props) { s.Properties["more"] = props{Type: "string"} })},
		"another version":           {change: secondVersion(false)},
		"another version is stored": {change: secondVersion(true)},
		"another text":              {change: field("image", func(s *props) { s.Description = "which image" })},
		"a wider bound":             {change: field("image", func(s *props) { s.MaxLength = new(int64(1000)) })},
		"no bound":                  {change: field("count", func(s *props) { s.Minimum = nil })},
		"more values": {
			change: field("mode", func(s *props) { s.Enum = append(s.Enum, apiextensionsv1.JSON{Raw: []byte(`"c"`)}) }),
		},
		"null is accepted": {change: field("image", func(s *props) { s.Nullable = true })},
		"values of any type": {
			change: field("map", func(s *props) { s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true} }),
		},
		"nothing is required": {change: func(crd *definition) { schemaIn(crd).Required = nil }},
		"columns": {change: func(crd *definition) {
			crd.Spec.Versions[0].AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Age", Type: "date", JSONPath: ".x"}}
		}},
		"the certificate of a webhook": {have: convertedBy("there", "b"), change: func(crd *definition) {
			convertedBy("there", "b")(crd)
			crd.Spec.Conversion.Webhook.ClientConfig.CABundle = nil
		}},
		"labels and annotations": {change: func(crd *definition) {
			crd.Labels = map[string]string{"team": "evil"}
			crd.Annotations = map[string]string{
				"cert-manager.io/inject-ca-from": "evil/ca", "olmcore/changeable-by": NS, "olmcore/api-group-shared-with": NS,
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			have := thing()
			if c.have != nil {
				c.have(have)
			}
			have = Installed(have, true)
			have.Annotations = recordedFor("there/b.v1")
			want := thing(c.change)
			s := Step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", want)
			theirs := CSV("b.v1", versioned("1.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" }))
			in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1", versioned("1.0.0")), have, theirs))
			r := reconcile(t, in)
			if c.refused != "" {
				require.Equal(t, []string{status}, Describe(r))
				require.Equal(t, "retrying execution due to error: CustomResourceDefinition things.example.com is owned by there/b.v1 too, and "+c.refused+
					" would change for it", statusOf(in, r).Message)
			} else {
				require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, Describe(r))
				after := r.Actions[0].(olmcore.Update).After.(*definition)
				require.Equal(t, want.Spec.Versions, after.Spec.Versions)
				require.Equal(t, have.Spec.Conversion, after.Spec.Conversion)
				require.Equal(t, have.Labels, after.Labels)
				annotations := maps.Clone(after.Annotations)
				delete(annotations, stepHash)
				recorded := recordedFor("there/b.v1", "ops/a.v1")
				recorded[firstInstalledBy] = "there"
				require.Equal(t, recorded, annotations)
			}

			// Every change is written if no other CSV owns the definition, if the administrator allows it,
			// or if the configuration allows it, as in OLM.
			for name, allow := range map[string]func(*installplan.Input){
				"the other was deleted":      func(in *installplan.Input) { in.Alongside = olmcore.Found[*v1alpha1.ClusterServiceVersion]() },
				"the other is being deleted": func(in *installplan.Input) { in.Alongside.Items[0].DeletionTimestamp = Ago(0) },
				"the other is a copy":        func(in *installplan.Input) { in.Alongside.Items[0].Labels = map[string]string{"olm.copiedFrom": "x"} },
				"the other does not own it":  func(in *installplan.Input) { in.Alongside.Items[0].Spec.CustomResourceDefinitions.Owned = nil },
				"the other only claims it": func(in *installplan.Input) {
					in.CustomResourceDefinitions.Items[0].Annotations = recordedFor("ops/a.v0")
				},
				"the administrator allows it": func(in *installplan.Input) {
					in.CustomResourceDefinitions.Items[0].Annotations["olmcore/changeable-by"] = "x,ops"
				},
				"the switch": func(in *installplan.Input) { in.Config.ChangeOwnedCRDs = true },
			} {
				in := in
				in.CustomResourceDefinitions = olmcore.Found[*definition](have.DeepCopy())
				in.Alongside = olmcore.Found[*v1alpha1.ClusterServiceVersion](theirs.DeepCopy())
				allow(&in)
				require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, Describe(reconcile(t, in)), name)
			}
		})
	}
}

// TestPredecessorsAreNoOtherOwnersOfADefinition checks which versions of the plan's own namespace count as other
// owners: none that the version of the step replaces, whatever its name.
func TestPredecessorsAreNoOtherOwnersOfADefinition(t *testing.T) {
	for name, c := range map[string]struct {
		recorded string
		own      func(*v1alpha1.ClusterServiceVersion)
		others   []olmcore.Object
		refused  bool
	}{
		"the predecessor": {
			recorded: "ops/old.v1", own: func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "old.v1" }, others: []olmcore.Object{CSV("old.v1", versioned("0.1.0"))},
		},
		"one that is skipped": {
			recorded: "ops/old.v1", own: func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Skips = []string{"x.v1", "old.v1"} }, others: []olmcore.Object{CSV("old.v1", versioned("0.1.0"))},
		},
		"the predecessor's predecessor": {
			recorded: "ops/oldest.v1", own: func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "old.v1" }, others: []olmcore.Object{CSV("old.v1", versioned("0.2.0", func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "oldest.v1" })), CSV("oldest.v1", versioned("0.1.0"))},
		},
		"an earlier one of the package": {
			recorded: "ops/a.v0", own: func(*v1alpha1.ClusterServiceVersion) {}, others: []olmcore.Object{CSV("a.v0", versioned("0.1.0"))},
		},
		"versions that replace in a ring": {recorded: "ops/a.v1", own: func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "a.v1" }},
		"another operator": {
			recorded: "ops/b.v1", own: func(*v1alpha1.ClusterServiceVersion) {}, others: []olmcore.Object{CSV("b.v1", versioned("0.1.0"))}, refused: true,
		},
		"the predecessor's name elsewhere": {recorded: "there/a.v0", own: func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "a.v0" },
			others: []olmcore.Object{CSV("a.v0", versioned("0.1.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" }))}, refused: true},
		"a step whose version does not own it": {recorded: "there/b.v1", own: func(c *v1alpha1.ClusterServiceVersion) { c.Spec.CustomResourceDefinitions.Owned = nil },
			others: []olmcore.Object{CSV("b.v1", versioned("0.1.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" }))}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			have := Installed(thing(), true)
			have.Annotations = recordedFor(c.recorded)
			s := Step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com",
				thing(field("image", func(s *props) { s.MaxLength = new(int64(10)) })))
			in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1", versioned("1.0.0", c.own)), have), with(c.others...))
			r := reconcile(t, in)
			if c.refused {
				require.Equal(t, []string{status}, Describe(r))
				require.Contains(t, statusOf(in, r).Message, "is owned by "+c.recorded+" too")
				return
			}
			require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, Describe(r))
		})
	}
}

// TestUnmanagedDefinitionIsUsedOrRefused checks that an unmanaged definition is never written. The version is not
// recorded on it either, because a record would prove that OLM installed it.
func TestUnmanagedDefinitionIsUsedOrRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*definition)
		users  func(*definition)
		in     string
	}{
		"the same":                {},
		"one that accepts more":   {users: secondVersion(false)},
		"one with a converter":    {users: convertedBy("users", "converter")},
		"a step with a converter": {change: convertedBy("evil", "eavesdropper")},
		"a step with another field": {
			change: specOf(func(s *props) { s.Properties["more"] = props{Type: "string"} }), in: inVersion + ".properties[spec].properties[more]",
		},
		"a step with another version":  {change: secondVersion(false), in: "spec.versions[v2] (removed)"},
		"a definition of OLM's itself": {users: func(crd *definition) { crd.Spec.Group = "operators.coreos.com" }, in: "spec.group"},
	} {
		t.Run(name, func(t *testing.T) {
			users, want := thing(), thing()
			if c.users != nil {
				c.users(users)
			}
			if c.change != nil {
				c.change(want)
			}
			users = Installed(users, true)
			users.Labels = nil
			s := Step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", want)
			in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1", versioned("1.0.0")), users))
			r := reconcile(t, in)
			require.Equal(t, []string{status}, Describe(r))
			if c.in == "" {
				require.Equal(t, Complete, statusOf(in, r).Phase)
			} else {
				require.Equal(t, "retrying execution due to error: CustomResourceDefinition things.example.com exists, is not managed by OLM, and differs from the step in "+
					c.in+"; label it olm.managed=true to hand it over, or remove it", statusOf(in, r).Message)
			}
			in.Config.OverwriteUnmanaged = true
			if users.Spec.Group == "example.com" {
				require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, Describe(reconcile(t, in)))
			}
		})
	}
}

// TestHashCollisionHidesNoOwner checks that two owners with the same hash are both recorded. OLM records an owner of a
// definition under a hash, and a name with the same hash is easily found.
func TestHashCollisionHidesNoOwner(t *testing.T) {
	const victim, evil = "8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"
	require.Equal(t, alongsideHash(victim+"/a.v1"), alongsideHash(evil+"/a.v1"))
	in := func(namespace string) *v1alpha1.ClusterServiceVersion {
		return CSV("a.v1", versioned("1.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = namespace }))
	}
	have := Installed(thing(), true)
	have.Annotations = recordedFor(victim + "/a.v1")
	round := func(have *definition, change ...func(*definition)) olmcore.Result {
		s := Step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", thing(change...))
		g := Group()
		g.Namespace = evil
		p := Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second), func(p *v1alpha1.InstallPlan) { p.Namespace = evil })
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

	// The version is recorded once, and the other one still owns the definition.
	for _, r := range []olmcore.Result{round(after), round(after, convertedBy("evil", "eavesdropper"))} {
		require.Len(t, r.Actions, 1)
		require.IsType(t, olmcore.UpdateStatus{}, r.Actions[0])
	}
}

// TestRecordsOnADefinitionAreLimited checks that a plan records only valid names of versions, and so few of them that
// other namespaces have space for theirs.
func TestRecordsOnADefinitionAreLimited(t *testing.T) {
	made := func(have *definition, names ...string) (installplan.Input, olmcore.Result) {
		var steps []*v1alpha1.Step
		for _, name := range names {
			steps = append(steps, Step(name, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", thing()))
		}
		in := input(Plan(Installing, steps, Started(time.Second)))
		if have != nil {
			in.CustomResourceDefinitions = olmcore.Found[*definition](have)
		}
		return in, reconcile(t, in)
	}
	names := make([]string, 21)
	for i := range names {
		names[i] = fmt.Sprintf("a.v%d", i)
	}
	theirs := Installed(thing(), true)
	theirs.Annotations = recordedFor("there/b.v1")
	full := Installed(thing(), true)
	full.Annotations = recordedFor()
	var versions []*v1alpha1.ClusterServiceVersion
	for _, name := range names[:20] {
		maps.Copy(full.Annotations, recordedFor("ops/"+name))
		versions = append(versions, CSV(name, versioned("1.0.0")))
	}
	for what, have := range map[string]*definition{"new": nil, "another's": theirs} {
		for _, name := range []string{"a/../../secrets", "a%2e", "A", strings.Repeat("a", 300)} {
			in, r := made(have, name)
			require.Equal(t, []string{status}, Describe(r), what)
			require.Contains(t, statusOf(in, r).Message, "is not a valid name of a ClusterServiceVersion", what)
		}
		in, r := made(have, names...)
		require.Equal(t, []string{status}, Describe(r), what)
		require.Contains(t, statusOf(in, r).Message, "is in steps of 21 versions, but can record only 20", what)
		_, r = made(have, names[:20]...)
		require.Contains(t, Describe(r)[len(r.Actions)-1], "CustomResourceDefinition things.example.com (", what)
	}
	in, _ := made(full, names[20])
	in.ClusterServiceVersions = olmcore.Found(versions...)
	r := reconcile(t, in)
	require.Equal(t, []string{status}, Describe(r))
	require.Contains(t, statusOf(in, r).Message, "would record 21 versions of namespace ops, but can record only 20")

	// A record that was forged, or that OLM wrote, does not prevent other plans from being read.
	full.Annotations = recordedFor("evil/a/../b", "evil/A", "EVIL/a", "evil/a.v1")
	in, _ = made(full, "a.v1")
	asked := &asking{Reader: Reader(t, in.InstallPlan, full, Group())}
	_, err := installplan.Gather(t.Context(), asked, key, installplan.Config{})
	require.NoError(t, err)
	require.Equal(t, []string{"evil/a.v1", "ops/a.v1"}, asked.versions)
}

// TestDefinitionIsProtectedBeforeItsVersionExists checks that an unfinished plan of another namespace counts as an
// owner. A plan writes its definitions before their version exists.
func TestDefinitionIsProtectedBeforeItsVersionExists(t *testing.T) {
	have := Installed(thing(), true)
	have.Annotations = recordedFor("there/b.v1")
	theirs := func(phase v1alpha1.InstallPlanPhase, names ...string) *v1alpha1.InstallPlan {
		return Plan(phase, nil, func(p *v1alpha1.InstallPlan) {
			p.Namespace, p.Name, p.Spec.ClusterServiceVersionNames = "there", "theirs", names
		})
	}
	retried := theirs(v1alpha1.InstallPlanPhaseFailed, "b.v1")
	retried.Status.Conditions = []v1alpha1.InstallPlanCondition{{Type: installplan.ConditionRetrying, Status: corev1.ConditionTrue}}
	for name, c := range map[string]struct {
		plan  *v1alpha1.InstallPlan
		owner bool
	}{
		"their plan runs":           {theirs(Installing, "b.v1"), true},
		"their plan waits":          {theirs(v1alpha1.InstallPlanPhaseRequiresApproval, "x.v1", "b.v1"), true},
		"their plan is retried":     {retried, true},
		"their plan is for another": {theirs(Installing, "x.v1"), false},
		"their plan is finished":    {theirs(v1alpha1.InstallPlanPhaseComplete, "b.v1"), false},
		"their plan has failed":     {theirs(v1alpha1.InstallPlanPhaseFailed, "b.v1"), false},
		"their plan never existed":  {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			round := func(change ...func(*definition)) (installplan.Input, olmcore.Result) {
				s := Step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", thing(change...))
				objects := []olmcore.Object{Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), have, Group(), CSV("a.v1", versioned("1.0.0"))}
				if c.plan != nil {
					objects = append(objects, c.plan)
				}
				in, err := installplan.Gather(t.Context(), Reader(t, objects...), key, installplan.Config{})
				require.NoError(t, err)
				in.Now = Noon
				return in, reconcile(t, in)
			}
			in, r := round(convertedBy("evil", "eavesdropper"))
			require.Equal(t, c.owner, strings.Contains(statusOf(in, r).Message, "is owned by there/b.v1 too"))
			_, r = round(specOf(func(s *props) { s.Properties["more"] = props{Type: "string"} }))
			require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, Describe(r))
			_, kept := r.Actions[0].(olmcore.Update).After.GetAnnotations()[alongside+alongsideHash("there/b.v1")]
			require.Equal(t, c.owner, kept)
		})
	}
}

// TestForgedNewerVersionKeepsNoOldSchema checks that a version of another namespace that claims to be a newer one of
// the package does not prevent the operator from adding a field.
func TestForgedNewerVersionKeepsNoOldSchema(t *testing.T) {
	more := specOf(func(s *props) { s.Properties["more"] = props{Type: "string"} })
	have := Installed(thing(), true)
	have.Annotations = recordedFor("evil/a.v9")
	forged := CSV("a.v9", versioned("9.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "evil" }))
	s := Step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", thing(more))
	r := reconcile(t, input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1", versioned("1.0.0")), have, forged)))
	require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, Describe(r))
	require.Equal(t, thing(more).Spec.Versions, r.Actions[0].(olmcore.Update).After.(*definition).Spec.Versions)
	require.NotContains(t, Reasons(r), installplan.ReasonNewerCRDKept)
}

// TestSchemaChangesThatNeedValidation checks the changes whose validation Reconcile would use.
func TestSchemaChangesThatNeedValidation(t *testing.T) {
	installs := CRDObject("v1", "v2")
	newer := CSV("a.v2", versioned("2.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" }))
	kept := Installed(other(CRDObject("v1", "v2"), 0, 1), true)
	kept.Annotations = map[string]string{"operatorframework.io/installed-alongside-" + alongsideHash("there/a.v2"): "there/a.v2"}
	done := applied(t, CRDStep("a.v1", "v1", "v2"), CSV("a.v1"))
	for name, c := range map[string]struct {
		phase    v1alpha1.InstallPlanPhase
		step     *v1alpha1.Step
		observed []olmcore.Object
		want     []string
	}{
		"a definition that does not exist": {},
		"the schemas are the same":         {observed: []olmcore.Object{Installed(CRDObject("v1", "v2"), true)}},
		"a definition without versions":    {observed: []olmcore.Object{Installed(CRDObject(), true)}},
		"one schema differs": {
			observed: []olmcore.Object{Installed(other(CRDObject("v1", "v2"), 1), true)}, want: []string{"v2"},
		},
		"both differ": {
			observed: []olmcore.Object{Installed(other(CRDObject("v2", "v1"), 0, 1), true)}, want: []string{"v1", "v2"},
		},
		"a version that was not served": {
			observed: []olmcore.Object{Installed(unserved(other(CRDObject("v1", "v2"), 0, 1), 0), true)}, want: []string{"v2"},
		},
		"a version that is no longer served": {
			step: Step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", unserved(CRDObject("v1", "v2"), 1)), observed: []olmcore.Object{Installed(other(CRDObject("v1", "v2"), 0, 1), true)}, want: []string{"v1"},
		},
		"a version that is new": {observed: []olmcore.Object{Installed(other(CRDObject("v1"), 0), true)}, want: []string{"v1"}},
		"a plan that waits for approval": {
			phase: RequiresApproval, observed: []olmcore.Object{Installed(other(CRDObject("v1", "v2"), 1), true)}, want: []string{"v2"},
		},
		"a plan that is Complete":               {phase: Complete, observed: []olmcore.Object{Installed(other(CRDObject("v1", "v2"), 1), true)}},
		"applied steps are not validated again": {observed: []olmcore.Object{done}},
		"a definition that a newer one needs":   {observed: []olmcore.Object{kept, newer, CSV("a.v1", versioned("1.0.0"))}},
		"a plan without definitions": {
			step: RoleStep("a.v1", "r"), observed: []olmcore.Object{Installed(other(CRDObject("v1", "v2"), 1), true)},
		},
		"a definition that is recorded as applied": {
			step: WithStatus(Present, CRDStep("a.v1", "v1", "v2")), observed: []olmcore.Object{Installed(other(CRDObject("v1", "v2"), 1), true)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.step
			if s == nil {
				s = CRDStep("a.v1", "v1", "v2")
			}
			p := Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second))
			if c.phase != None {
				p.Status.Phase = c.phase
				p.Spec.Approved = c.phase != RequiresApproval
			}
			in := input(p, with(CSV("a.v1")), with(c.observed...))
			if len(c.observed) == 3 {
				in = input(p, with(c.observed...))
			}
			require.NoError(t, invariant.Laws(reconcileResult, in))
			changes, err := schemaChanges(in)
			require.NoError(t, err)
			if c.want == nil {
				require.Empty(t, changes)
				return
			}
			require.Len(t, changes, 1)
			require.Equal(t, c.want, changes[0].Versions)
			require.Equal(t, "things.example.com", changes[0].Before.Name)
			require.Same(t, in.CustomResourceDefinitions.Items[0], changes[0].Before)
			require.Len(t, changes[0].After.Spec.Versions, len(installs.Spec.Versions))
		})
	}
	_, err := schemaChanges(installplan.Input{})
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
}

// TestInvalidCustomResourcesRefuseThePlan checks which verdicts about custom resources refuse the plan, which are only
// reported, and which must not be hidden by others.
func TestInvalidCustomResourcesRefuseThePlan(t *testing.T) {
	const prefix = `error validating existing CRs against new CRD's schema for "things.example.com": `
	verdict := func(name string, old, new []string) installplan.ResourceVerdict {
		return installplan.ResourceVerdict{CustomResourceDefinition: "things.example.com", Version: "v1", Namespace: "n", Name: name, Old: old, New: new}
	}
	tight := func(name, text string) string {
		return fmt.Sprintf(`error validating example.com/v1, Kind=Thing "n/%s": updated validation is too restrictive: %s`, name, text)
	}
	bad := []string{"too big"}
	var crowd []installplan.ResourceVerdict
	for i := range 200 {
		crowd = append(crowd, verdict(fmt.Sprintf("a%03d", i), bad, bad))
	}
	for name, c := range map[string]struct {
		verdicts []installplan.ResourceVerdict
		convert  bool
		want     string
		reasons  []string
	}{
		"no finding":  {verdicts: []installplan.ResourceVerdict{verdict("x", nil, nil)}},
		"one finding": {verdicts: []installplan.ResourceVerdict{verdict("x", nil, bad)}, want: tight("x", "too big")},
		"several findings": {
			verdicts: []installplan.ResourceVerdict{verdict("x", nil, []string{"a", "b"})}, want: tight("x", "[a, b]"),
		},
		"all resources are named": {
			verdicts: []installplan.ResourceVerdict{verdict("y", nil, bad), verdict("x", nil, bad)}, want: tight("x", "too big") + "; " + tight("y", "too big"),
		},
		"invalid before": {
			verdicts: []installplan.ResourceVerdict{verdict("x", bad, bad)}, reasons: []string{"ExistingResourceInvalid"},
		},
		"a webhook converts": {
			verdicts: []installplan.ResourceVerdict{verdict("x", nil, bad)}, convert: true, reasons: []string{"ExistingResourceInvalid"},
		},
		"a webhook, and a read error": {
			verdicts: []installplan.ResourceVerdict{{CustomResourceDefinition: "things.example.com", Version: "v1", ReadError: "no answer"}}, convert: true, want: "no answer",
		},
		"custom resources cannot be read": {
			verdicts: []installplan.ResourceVerdict{{CustomResourceDefinition: "things.example.com", Version: "v1", ReadError: "cannot list"}}, want: "cannot list",
		},
		"some were not validated": {
			verdicts: []installplan.ResourceVerdict{{CustomResourceDefinition: "things.example.com", Version: "v1", Unread: 3}}, reasons: []string{"Truncated"},
		},
		"another definition": {
			verdicts: []installplan.ResourceVerdict{{CustomResourceDefinition: "others.example.com", Version: "v1", Name: "x", New: bad}},
		},
		"another version": {
			verdicts: []installplan.ResourceVerdict{{CustomResourceDefinition: "things.example.com", Version: "v0", Name: "x", New: bad}},
		},
		"many findings hide no other": {
			verdicts: append(crowd, verdict("z", nil, bad)), want: tight("z", "too big"), reasons: append(slices.Repeat([]string{"ExistingResourceInvalid"}, 100), "Truncated"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := CRDStep("a.v1", "v1")
			if c.convert {
				crd := CRDObject("v1")
				crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
				s = Step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", crd.Name, crd)
			}
			in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1"), Installed(other(CRDObject("v1"), 0), true)))
			in.CustomResources = olmcore.Found(c.verdicts...)
			require.NoError(t, invariant.Laws(reconcileResult, in))
			r := reconcile(t, in)
			got := Reasons(r)
			if c.want == "" {
				require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, Describe(r))
				Same(t, c.reasons, got)
				return
			}
			require.Equal(t, []string{status}, Describe(r))
			require.Equal(t, prefix+c.want, strings.TrimPrefix(statusOf(in, r).Message, "retrying execution due to error: "))
			want := append([]string{"StepRefused"}, c.reasons...)
			slices.Sort(want)
			Same(t, want, got)
		})
	}
}

// TestFailedPlanValidatesCustomResourcesAgain checks that a failed plan starts again once its custom resources are
// valid. They are not watched.
func TestFailedPlanValidatesCustomResourcesAgain(t *testing.T) {
	sub := Subscription("a", RefersTo("install-x"))
	in := input(Plan(Failed, []*v1alpha1.Step{CRDStep("a.v1", "v1")}, OwnedBy(sub), func(p *v1alpha1.InstallPlan) {
		p.Status.Message = `error validating existing CRs against new CRD's schema for "things.example.com": x`
	}), with(sub, CSV("a.v1"), Installed(other(CRDObject("v1"), 0), true)))
	in.CustomResources = olmcore.Found(installplan.ResourceVerdict{CustomResourceDefinition: "things.example.com", Version: "v1", Name: "x", New: []string{"bad"}})
	require.NoError(t, invariant.Laws(reconcileResult, in))
	r := reconcile(t, in)
	require.Empty(t, r.Actions)
	require.Equal(t, 30*time.Second, r.RequeueAfter)
	in.CustomResources = olmcore.Found[installplan.ResourceVerdict]()
	require.Equal(t, Installing, statusOf(in, reconcile(t, in)).Phase)
}

// TestPlanWithServiceAccountHidesValuesOfCustomResources checks that the messages of a plan with a ServiceAccount
// contain no values of custom resources, because readers of the plan may not be allowed to read these.
func TestPlanWithServiceAccountHidesValuesOfCustomResources(t *testing.T) {
	narrower := thing(field("image", func(s *props) { s.MaxLength = new(int64(1)) }))
	s := Step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", narrower)
	bad := func(namespace string) installplan.ResourceVerdict {
		return installplan.ResourceVerdict{CustomResourceDefinition: "things.example.com", Version: "v1", Namespace: namespace, Name: "name-of-one",
			New: []string{`Invalid value: "secret"`}}
	}
	account := &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: NS, Name: "scoped"}
	bound, of := scopedTo(account)
	have := Installed(thing(), true)
	have.Annotations = recordedFor("ops/a.v1")
	round := func(verdict installplan.ResourceVerdict, bind bool) string {
		in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1", versioned("1.0.0")), have.DeepCopy()))
		if bind {
			bound(in.InstallPlan)
			of(&in)
			in.ServiceAccount = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: "scoped"}}
		}
		in.CustomResources = olmcore.Found[installplan.ResourceVerdict](verdict)
		return statusOf(in, reconcile(t, in)).Message
	}
	const prefix = `retrying execution due to error: error validating existing CRs against new CRD's schema for "things.example.com": error validating example.com/v1, Kind=Thing `
	require.Equal(t, prefix+`"of another namespace": updated validation is too restrictive: (not shown)`, round(bad("victim"), true))
	require.Equal(t, prefix+`"of another namespace": updated validation is too restrictive: (not shown)`, round(bad(""), true))
	require.Equal(t, prefix+`"ops/name-of-one": updated validation is too restrictive: Invalid value: "secret"`, round(bad(NS), true))
	require.Equal(t, prefix+`"victim/name-of-one": updated validation is too restrictive: Invalid value: "secret"`, round(bad("victim"), false))

	// The custom resources of a definition of another operator are not read.
	have.Annotations = recordedFor("victim/b.v1")
	theirs := CSV("b.v1", versioned("1.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "victim" }))
	in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1", versioned("1.0.0")), have, theirs))
	changes, err := schemaChanges(in)
	require.NoError(t, err)
	require.Empty(t, changes)
}
