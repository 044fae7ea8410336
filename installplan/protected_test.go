// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"maps"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

type (
	definition = apiextensionsv1.CustomResourceDefinition
	props      = apiextensionsv1.JSONSchemaProps
)

// thing is the definition of another operator, with a field of each sort.
func thing(change ...func(*definition)) *definition {
	crd := crdObject("v1")
	*schemaIn(crd) = props{Type: "object", Required: []string{"spec"}, Properties: map[string]props{
		"spec": {Type: "object", Properties: map[string]props{
			"image": {Type: "string", MaxLength: new(int64(100))}, "mode": {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`"b"`)}}},
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

// field changes a field of the spec of things.
func field(name string, change func(*props)) func(*definition) {
	return func(crd *definition) {
		spec := schemaIn(crd).Properties["spec"]
		f := spec.Properties[name]
		change(&f)
		spec.Properties[name] = f
	}
}

func specOf(change func(*props)) func(*definition) {
	return func(crd *definition) {
		spec := schemaIn(crd).Properties["spec"]
		change(&spec)
		schemaIn(crd).Properties["spec"] = spec
	}
}

func convertedBy(namespace, service string) func(*definition) {
	return func(crd *definition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{CABundle: []byte("of " + service),
				Service: &apiextensionsv1.ServiceReference{Namespace: namespace, Name: service}},
		}}
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

// TestAPlanTakesNothingFromOtherOwnersOfADefinition: an operator that lives in
// another namespace has what it had, whatever bundle comes with the same
// definition; what only adds to it is written.
func TestAPlanTakesNothingFromOtherOwnersOfADefinition(t *testing.T) {
	const inSpec = inVersion + ".properties[spec]"
	for name, c := range map[string]struct {
		change  func(*definition)
		have    func(*definition)
		refused string
	}{
		"a conversion webhook":           {change: convertedBy("evil", "eavesdropper"), refused: "spec.conversion"},
		"another conversion webhook":     {have: convertedBy("there", "b"), change: convertedBy("evil", "eavesdropper"), refused: "spec.conversion"},
		"no conversion webhook any more": {have: convertedBy("there", "b"), change: func(*definition) {}, refused: "spec.conversion"},
		"a URL to convert at": {change: func(crd *definition) {
			convertedBy("", "")(crd)
			crd.Spec.Conversion.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: new("https://evil.example.com")}
		}, refused: "spec.conversion"},
		"short names":                 {change: func(crd *definition) { crd.Spec.Names.ShortNames = []string{"po"} }, refused: "spec.names"},
		"a version is gone":           {have: secondVersion(false), change: func(*definition) {}, refused: "spec.versions[v2] (removed)"},
		"a version is served no more": {have: secondVersion(false), change: func(crd *definition) { secondVersion(false)(crd); crd.Spec.Versions[1].Served = false }, refused: "spec.versions[v2].served"},
		"a status subresource": {change: func(crd *definition) {
			crd.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
		}, refused: "spec.versions[v1].subresources"},
		"a field is gone":                     {change: specOf(func(s *props) { delete(s.Properties, "image") }), refused: inSpec + ".properties[image]"},
		"a field is required":                 {change: specOf(func(s *props) { s.Required = []string{"image"} }), refused: inSpec + ".required"},
		"a default of the tenant's choice":    {change: field("image", func(s *props) { s.Default = &apiextensionsv1.JSON{Raw: []byte(`"evil/image"`)} }), refused: inSpec + ".properties[image].default"},
		"another type":                        {change: field("image", func(s *props) { s.Type = "integer" }), refused: inSpec + ".properties[image] (validation)"},
		"a pattern":                           {change: field("image", func(s *props) { s.Pattern = "^evil/" }), refused: inSpec + ".properties[image] (validation)"},
		"a lower bound":                       {change: field("image", func(s *props) { s.MaxLength = new(int64(10)) }), refused: inSpec + ".properties[image] (validation)"},
		"fewer values":                        {change: field("mode", func(s *props) { s.Enum = s.Enum[:1] }), refused: inSpec + ".properties[mode].enum"},
		"null is refused":                     {change: field("count", func(s *props) { s.Nullable = false }), refused: inSpec + ".properties[count] (validation)"},
		"a rule":                              {change: specOf(func(s *props) { s.XValidations = apiextensionsv1.ValidationRules{{Rule: "false"}} }), refused: inSpec + ".x-kubernetes-validations"},
		"entries of another type":             {change: field("list", func(s *props) { s.Items.Schema.Type = "integer" }), refused: inSpec + ".properties[list].items (validation)"},
		"values of another type":              {change: field("map", func(s *props) { s.AdditionalProperties.Schema.Type = "integer" }), refused: inSpec + ".properties[map].additionalProperties (validation)"},
		"unknown fields are dropped":          {change: field("free", func(s *props) { s.XPreserveUnknownFields = nil }), refused: inSpec + ".properties[free] (validation)"},
		"unknown fields are judged":           {change: field("free", func(s *props) { s.Properties = map[string]props{"a": {Type: "integer"}} }), refused: inSpec + ".properties[free].properties"},
		"another version is stored, narrower": {change: secondVersion(true, specOf(func(s *props) { s.Properties = nil })), refused: "spec.versions[v2].schema.openAPIV3Schema.properties[spec].properties[count] (stored instead of v1)"},
		"another version is stored that the webhook may not know": {have: convertedBy("there", "b"), change: func(crd *definition) { convertedBy("there", "b")(crd); secondVersion(true)(crd) }, refused: "spec.versions[v2].storage"},

		"nothing":                   {change: func(*definition) {}},
		"another field":             {change: specOf(func(s *props) { s.Properties["more"] = props{Type: "string"} })},
		"another version":           {change: secondVersion(false)},
		"another version is stored": {change: secondVersion(true)},
		"another text":              {change: field("image", func(s *props) { s.Description = "which image" })},
		"a wider bound":             {change: field("image", func(s *props) { s.MaxLength = new(int64(1000)) })},
		"no bound":                  {change: field("count", func(s *props) { s.Minimum = nil })},
		"more values":               {change: field("mode", func(s *props) { s.Enum = append(s.Enum, apiextensionsv1.JSON{Raw: []byte(`"c"`)}) })},
		"null is taken":             {change: field("image", func(s *props) { s.Nullable = true })},
		"nothing is required":       {change: func(crd *definition) { schemaIn(crd).Required = nil }},
		"columns": {change: func(crd *definition) {
			crd.Spec.Versions[0].AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Age", Type: "date", JSONPath: ".x"}}
		}},
		"the certificate of a webhook": {have: convertedBy("there", "b"), change: func(crd *definition) {
			convertedBy("there", "b")(crd)
			crd.Spec.Conversion.Webhook.ClientConfig.CABundle = nil
		}},
		"labels and annotations": {change: func(crd *definition) {
			crd.Labels = map[string]string{"team": "evil"}
			crd.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "evil/ca", "olmcore/changeable-by": ns}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			have := thing()
			if c.have != nil {
				c.have(have)
			}
			have = installed(have, true)
			have.Annotations = recordedFor("there/b.v1")
			want := thing(c.change)
			s := step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", want)
			theirs := csv("b.v1", versioned("1.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" }))
			in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1", versioned("1.0.0")), have, theirs))
			r := reconcile(t, in)
			if c.refused != "" {
				require.Equal(t, []string{status}, describe(r))
				require.Equal(t, "retrying execution due to error: CustomResourceDefinition things.example.com is owned by there/b.v1 too, and "+c.refused+
					" would change for it", statusOf(in, r).Message)
			} else {
				require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, describe(r))
				after := r.Actions[0].(olmcore.Update).After.(*definition)
				require.Equal(t, want.Spec.Versions, after.Spec.Versions)
				require.Equal(t, have.Spec.Conversion, after.Spec.Conversion)
				require.Equal(t, have.Labels, after.Labels)
				annotations := maps.Clone(after.Annotations)
				delete(annotations, stepHash)
				require.Equal(t, recordedFor("there/b.v1", "ops/a.v1"), annotations)
			}

			// Whatever it is, it is written where no other CSV owns the definition, where
			// the administrator says so, and as OLM does.
			for name, allow := range map[string]func(*installplan.Input){
				"the other is gone":         func(in *installplan.Input) { in.Alongside = olmcore.Found[*v1alpha1.ClusterServiceVersion]() },
				"the other is going":        func(in *installplan.Input) { in.Alongside.Items[0].DeletionTimestamp = ago(0) },
				"the other is a copy":       func(in *installplan.Input) { in.Alongside.Items[0].Labels = map[string]string{"olm.copiedFrom": "x"} },
				"the other does not own it": func(in *installplan.Input) { in.Alongside.Items[0].Spec.CustomResourceDefinitions.Owned = nil },
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
				require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, describe(reconcile(t, in)), name)
			}
		})
	}
}

// TestWhoIsAnotherOwnerOfADefinition in the plan's own namespace: none that the
// step's version replaces, whatever it is called.
func TestWhoIsAnotherOwnerOfADefinition(t *testing.T) {
	for name, c := range map[string]struct {
		recorded string
		own      func(*v1alpha1.ClusterServiceVersion)
		others   []olmcore.Object
		refused  bool
	}{
		"the predecessor":                 {recorded: "ops/old.v1", own: func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "old.v1" }, others: []olmcore.Object{csv("old.v1", versioned("0.1.0"))}},
		"one that is skipped":             {recorded: "ops/old.v1", own: func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Skips = []string{"x.v1", "old.v1"} }, others: []olmcore.Object{csv("old.v1", versioned("0.1.0"))}},
		"the predecessor's predecessor":   {recorded: "ops/oldest.v1", own: func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "old.v1" }, others: []olmcore.Object{csv("old.v1", versioned("0.2.0", func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "oldest.v1" })), csv("oldest.v1", versioned("0.1.0"))}},
		"an earlier one of the package":   {recorded: "ops/a.v0", own: func(*v1alpha1.ClusterServiceVersion) {}, others: []olmcore.Object{csv("a.v0", versioned("0.1.0"))}},
		"versions that replace in a ring": {recorded: "ops/a.v1", own: func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "a.v1" }},
		"another operator":                {recorded: "ops/b.v1", own: func(*v1alpha1.ClusterServiceVersion) {}, others: []olmcore.Object{csv("b.v1", versioned("0.1.0"))}, refused: true},
		"the predecessor's name elsewhere": {recorded: "there/a.v0", own: func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "a.v0" },
			others: []olmcore.Object{csv("a.v0", versioned("0.1.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" }))}, refused: true},
		"a step whose version does not own it": {recorded: "there/b.v1", own: func(c *v1alpha1.ClusterServiceVersion) { c.Spec.CustomResourceDefinitions.Owned = nil },
			others: []olmcore.Object{csv("b.v1", versioned("0.1.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" }))}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			have := installed(thing(), true)
			have.Annotations = recordedFor(c.recorded)
			s := step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com",
				thing(field("image", func(s *props) { s.MaxLength = new(int64(10)) })))
			in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1", versioned("1.0.0", c.own)), have), with(c.others...))
			r := reconcile(t, in)
			if c.refused {
				require.Equal(t, []string{status}, describe(r))
				require.Contains(t, statusOf(in, r).Message, "is owned by "+c.recorded+" too")
				return
			}
			require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, describe(r))
		})
	}
}

// TestAUsersDefinitionIsUsedOrRefused, never written: not noted for the version
// either, which would be a proof that OLM installed it.
func TestAUsersDefinitionIsUsedOrRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*definition)
		users  func(*definition)
		in     string
	}{
		"the same":                     {},
		"one that takes more":          {users: secondVersion(false)},
		"one with a converter":         {users: convertedBy("users", "converter")},
		"a step with a converter":      {change: convertedBy("evil", "eavesdropper")},
		"a step with another field":    {change: specOf(func(s *props) { s.Properties["more"] = props{Type: "string"} }), in: inVersion + ".properties[spec].properties[more]"},
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
			users = installed(users, true)
			users.Labels = nil
			s := step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", want)
			in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1", versioned("1.0.0")), users))
			r := reconcile(t, in)
			require.Equal(t, []string{status}, describe(r))
			if c.in == "" {
				require.Equal(t, complete, statusOf(in, r).Phase)
			} else {
				require.Equal(t, "retrying execution due to error: CustomResourceDefinition things.example.com exists, is not managed by OLM, and differs from the step in "+
					c.in+"; label it olm.managed=true to hand it over, or remove it", statusOf(in, r).Message)
			}
			in.Config.OverwriteUnmanaged = true
			if users.Spec.Group == "example.com" {
				require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, describe(reconcile(t, in)))
			}
		})
	}
}

// TestAnUnmanagedObjectIsUsedOrRefused: of each kind that a plan writes, one that
// is there and was not handed to OLM.
func TestAnUnmanagedObjectIsUsedOrRefused(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io"
	web := intstr.FromInt32(8080)
	roleRef := rbacv1.RoleRef{APIGroup: rbac, Kind: "Role", Name: "x"}
	subjects := []rbacv1.Subject{{Kind: "User", APIGroup: rbac, Name: "jane"}}
	for name, c := range map[string]struct {
		step          *v1alpha1.Step
		same, differs olmcore.Object
		in            string
	}{
		"ConfigMap": {step: step("a.v1", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x","labels":{"l":"1"}},"data":{"a":"1"}}`),
			same:    &corev1.ConfigMap{ObjectMeta: meta("x"), Data: map[string]string{"a": "1", "mine": "2"}},
			differs: &corev1.ConfigMap{ObjectMeta: meta("x"), Data: map[string]string{"a": "2"}}, in: "data"},
		"Secret of a bundle": {step: step("a.v1", "", "v1", "BundleSecret", "x", `{"metadata":{"name":"x"},"data":{"a":"MQ=="}}`),
			same:    &corev1.Secret{ObjectMeta: meta("x"), Data: map[string][]byte{"a": []byte("1")}},
			differs: &corev1.Secret{ObjectMeta: meta("x"), Data: map[string][]byte{"a": []byte("2")}}, in: "data"},
		"Service": {step: step("a.v1", "", "v1", "Service", "x", `{"metadata":{"name":"x"},"spec":{"ports":[{"port":80,"targetPort":8080}]}}`),
			same: &corev1.Service{ObjectMeta: meta("x"), Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", SessionAffinity: "None",
				Ports: []corev1.ServicePort{{Port: 80, TargetPort: web, Protocol: "TCP"}}}},
			differs: &corev1.Service{ObjectMeta: meta("x"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 81, TargetPort: web}}}}, in: "spec"},
		"Role": {step: roleStep("a.v1", "x"), same: &rbacv1.Role{ObjectMeta: meta("x"), Rules: rules()},
			differs: &rbacv1.Role{ObjectMeta: meta("x"), Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}}}}, in: "rules"},
		"RoleBinding": {step: step("a.v1", rbac, "v1", "RoleBinding", "x", `{"metadata":{"name":"x"},"roleRef":{"apiGroup":"`+rbac+`","kind":"Role","name":"x"},"subjects":[{"kind":"ServiceAccount","name":"evil"}]}`),
			same:    &rbacv1.RoleBinding{ObjectMeta: meta("x"), RoleRef: roleRef, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "evil"}}},
			differs: &rbacv1.RoleBinding{ObjectMeta: meta("x"), RoleRef: roleRef, Subjects: subjects}, in: "subjects"},
		"ClusterRole": {step: step("a.v1", rbac, "v1", "ClusterRole", "x", `{"metadata":{"name":"x"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`),
			same: &rbacv1.ClusterRole{ObjectMeta: clusterMeta("x"), Rules: rules()}, differs: &rbacv1.ClusterRole{ObjectMeta: clusterMeta("x")}, in: "rules"},
		"ClusterRoleBinding": {step: step("a.v1", rbac, "v1", "ClusterRoleBinding", "x", `{"metadata":{"name":"x"},"roleRef":{"apiGroup":"`+rbac+`","kind":"Role","name":"x"},"subjects":[]}`),
			same:    &rbacv1.ClusterRoleBinding{ObjectMeta: clusterMeta("x"), RoleRef: roleRef},
			differs: &rbacv1.ClusterRoleBinding{ObjectMeta: clusterMeta("x"), RoleRef: roleRef, Subjects: subjects}, in: "subjects"},
		"PodDisruptionBudget": {step: step("a.v1", "policy", "v1", "PodDisruptionBudget", "x", `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"x"},"spec":{"minAvailable":8080}}`),
			same:    &policyv1.PodDisruptionBudget{ObjectMeta: meta("x"), Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &web}},
			differs: &policyv1.PodDisruptionBudget{ObjectMeta: meta("x")}, in: "spec"},
		"NetworkPolicy": {step: step("a.v1", "networking.k8s.io", "v1", "NetworkPolicy", "x", `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"x"},"spec":{"podSelector":{},"policyTypes":["Ingress"]}}`),
			same:    &networkingv1.NetworkPolicy{ObjectMeta: meta("x"), Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Ingress"}}},
			differs: &networkingv1.NetworkPolicy{ObjectMeta: meta("x"), Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Egress"}}}, in: "spec"},
		"PriorityClass": {step: step("a.v1", "scheduling.k8s.io", "v1", "PriorityClass", "x", `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"x"},"value":7,"description":"new"}`),
			same:    &schedulingv1.PriorityClass{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}, ObjectMeta: clusterMeta("x"), Value: 7, Description: "new"},
			differs: &schedulingv1.PriorityClass{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}, ObjectMeta: clusterMeta("x"), Value: 7, Description: "old"}, in: "description"},
	} {
		t.Run(name, func(t *testing.T) {
			round := func(have olmcore.Object, change ...func(*installplan.Input)) (installplan.Input, olmcore.Result) {
				in := input(plan(installing, []*v1alpha1.Step{c.step}, started(time.Second)), with(csv("a.v1"), have))
				for _, f := range change {
					f(&in)
				}
				return in, reconcile(t, in)
			}
			in, r := round(c.same)
			require.Equal(t, []string{status}, describe(r))
			require.Equal(t, complete, statusOf(in, r).Phase, "it is used as it is")

			in, r = round(c.differs)
			require.Equal(t, []string{status}, describe(r))
			kind := olmcore.KeyOf(c.differs).Kind
			message := kind + " x exists, is not managed by OLM, and differs from the step in " + c.in + "; label it olm.managed=true to hand it over, or remove it"
			require.Equal(t, "retrying execution due to error: "+message, statusOf(in, r).Message)

			// The plan that failed of it goes on once the object was handed over, or by
			// the switch.
			handed := c.differs.DeepCopyObject().(olmcore.Object)
			handed.SetLabels(map[string]string{"olm.managed": "true"})
			_, r = round(handed)
			require.IsType(t, olmcore.Update{}, r.Actions[0])
			_, r = round(c.differs, func(in *installplan.Input) { in.Config.OverwriteUnmanaged = true })
			require.IsType(t, olmcore.Update{}, r.Actions[0])
			require.Contains(t, reasons(r), installplan.ReasonUnmanagedObjectUpdated)
			broken := plan(failed, []*v1alpha1.Step{c.step}, func(p *v1alpha1.InstallPlan) { p.Status.Message = message })
			sub := subscription("a", refersTo("install-x"))
			ownedBy(sub)(broken)
			in = input(broken, with(csv("a.v1"), handed, sub))
			require.Equal(t, installing, statusOf(in, reconcile(t, in)).Phase)
		})
	}
}

// TestAUsersAccountKeepsWhatItSays: a step adds to it what pulls images, and
// labels and annotations that it does not have.
func TestAUsersAccountKeepsWhatItSays(t *testing.T) {
	have := &corev1.ServiceAccount{ObjectMeta: meta("x")}
	have.Labels = map[string]string{"team": "users"}
	have.Annotations = map[string]string{"eks.amazonaws.com/role-arn": "users"}
	got, _ := update(t, step("a.v1", "", "v1", "ServiceAccount", "x",
		`{"metadata":{"name":"x","labels":{"team":"evil","more":"1"},"annotations":{"eks.amazonaws.com/role-arn":"evil","more":"1"}}}`), have)
	require.Equal(t, map[string]string{"team": "users", "more": "1"}, got.Labels)
	require.Equal(t, map[string]string{"eks.amazonaws.com/role-arn": "users", "more": "1"}, got.Annotations)
}
