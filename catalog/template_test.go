// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

func templated(template string) *v1alpha1.CatalogSource {
	cs := cool()
	cs.UID, cs.ResourceVersion, cs.Spec.Image = "uid", "1", "foo:old"
	if template != "" {
		cs.Annotations = map[string]string{"olm.catalogImageTemplate": template}
	}
	return cs
}

// resolve runs Template until it is at rest, and returns the object.
func resolve(t require.TestingT, cs *v1alpha1.CatalogSource, version string) *v1alpha1.CatalogSource {
	for range 3 {
		in := catalog.TemplateInput{Now: start, CatalogSource: cs, ServerVersion: version}
		require.NoError(t, invariant.Laws(catalog.Template, in))
		r, err := catalog.Template(in)
		require.NoError(t, err)
		if len(r.Actions) == 0 {
			require.True(t, r.Empty())
			return cs
		}
		require.Len(t, r.Actions, 1)
		switch a := r.Actions[0].(type) {
		case olmcore.Update:
			cs = a.After.(*v1alpha1.CatalogSource)
		case olmcore.UpdateStatus:
			cs = a.After.(*v1alpha1.CatalogSource)
		}
	}
	require.FailNow(t, "no end")
	return nil
}

// TestTemplatesResolveToImages checks which image a template resolves to, and what is wrong with templates that
// cannot be resolved.
func TestTemplatesResolveToImages(t *testing.T) {
	const cannot = "cannot construct catalog image reference, because "
	const syntax = "one or more template(s) has improper syntax"
	for name, test := range map[string]struct{ template, version, image, problem string }{
		"no placeholder":           {"foo:v1", "v1.20.3", "foo:v1", ""},
		"the major version":        {"foo/v{kube_major_version}", "v1.20.3", "foo/v1", ""},
		"major and minor":          {"foo/v{kube_major_version}.{kube_minor_version}", "v1.20.3", "foo/v1.20", ""},
		"all of them":              {"foo/v{kube_major_version}.{kube_minor_version}.{kube_patch_version}", "v1.20.1-beta.1+abc", "foo/v1.20.1", ""},
		"one of them twice":        {"foo-{kube_minor_version}:{kube_minor_version}", "1.20.3", "foo-20:20", ""},
		"an unknown version":       {"foo/v{kube_major_version}", "", "foo/vmissing", cannot + `variable(s) "{kube_major_version}" could not be resolved`},
		"a version that is none":   {"foo/v{kube_major_version}.{kube_minor_version}", "latest", "foo/vmissing.missing", cannot + `variable(s) "{kube_major_version}", "{kube_minor_version}" could not be resolved`},
		"an unknown placeholder":   {"foo/v{other}", "v1.20.3", "foo/v{other}", cannot + syntax},
		"both":                     {"foo/v{other}.{kube_patch_version}", "", "foo/v{other}.missing", cannot + `variable(s) "{kube_patch_version}" could not be resolved and ` + syntax},
		"upper case":               {"Foo/Bar", "v1.20.3", "Foo/Bar", cannot + syntax},
		"a host, a port, a digest": {"localhost:5000/a/b_c:v1@sha256:0123456789abcdef0123456789abcdef", "v1.20.3", "localhost:5000/a/b_c:v1@sha256:0123456789abcdef0123456789abcdef", ""},
		"white space":              {" foo", "v1.20.3", " foo", cannot + syntax},
	} {
		t.Run(name, func(t *testing.T) {
			got := resolve(t, templated(test.template), test.version)
			want := metav1.Condition{Status: metav1.ConditionTrue, Reason: "AllTemplatesResolved", LastTransitionTime: olmcore.Timestamp(start)}
			said, image := "catalog image reference was successfully resolved", test.image
			if test.problem != "" {
				want.Status, want.Reason, said, image = metav1.ConditionFalse, "UnableToResolve", test.problem, "foo:old"
			}
			require.Equal(t, image, got.Spec.Image)
			resolved, whole := want, want
			resolved.Type, resolved.Message = "ResolvedImage", test.image
			whole.Type, whole.Message = "TemplatesHaveResolved", said
			require.Equal(t, []metav1.Condition{whole, resolved}, got.Status.Conditions)
		})
	}
}

// TestConditionsAreRemovedWithTheTemplate checks that the conditions of Template are removed if the annotation is
// removed.
func TestConditionsAreRemovedWithTheTemplate(t *testing.T) {
	cs := resolve(t, templated("foo:v{kube_major_version}"), "v1.2.3")
	cs.Status.Conditions = append(cs.Status.Conditions, metav1.Condition{Type: "Available"})
	cs.Annotations = nil
	cs = resolve(t, cs, "v1.2.3")
	require.Equal(t, []metav1.Condition{{Type: "Available"}}, cs.Status.Conditions)
	require.Equal(t, "foo:v1", cs.Spec.Image)

	cs = templated("foo:v{kube_major_version}")
	cs.DeletionTimestamp = new(metav1.NewTime(start))
	require.Equal(t, cs, resolve(t, cs, "v1.2.3"))
	for _, in := range []catalog.TemplateInput{{}, {Now: start}} {
		_, err := catalog.Template(in)
		require.ErrorIs(t, err, olmcore.ErrInvalidInput)
	}
}

// TestTemplateAndReconcileKeepEachOthersConditions checks that Template and Reconcile keep each other's conditions.
func TestTemplateAndReconcileKeepEachOthersConditions(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	base.CatalogSource = resolve(t, func() *v1alpha1.CatalogSource {
		cs := base.CatalogSource.DeepCopy()
		cs.Annotations = map[string]string{"olm.catalogImageTemplate": "quay.io/example/catalog:v{kube_major_version}"}
		return cs
	}(), "v1.20.0")
	out := answer(t, base)
	require.Empty(t, out.Result)
	out = reconcile(t, base, func(in *catalog.Input) { silence(in, time.Hour) })
	status, ok := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
	require.True(t, ok)
	require.NotNil(t, meta.FindStatusCondition(status.Status.Conditions, catalog.ConditionResolvedImage))
}

// TestArbitraryTemplateIsResolvedOrReported checks that arbitrary text as a template causes no panic and is
// resolved or reported.
func TestArbitraryTemplateIsResolvedOrReported(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		resolve(t, templated(rapid.String().Draw(t, "template")), rapid.String().Draw(t, "version"))
	})
}

// A catalog whose image follows the version of the cluster.
func ExampleTemplate() {
	result, err := catalog.Template(catalog.TemplateInput{
		Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
		CatalogSource: &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{
			Namespace: "olm", Name: "cool", UID: "1",
			Annotations: map[string]string{"olm.catalogImageTemplate": "quay.io/example/catalog:v{kube_major_version}.{kube_minor_version}"},
		}},
		ServerVersion: "v1.34.1",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	record, err := olmcore.RecordOf(result.Actions[0])
	fmt.Println(record.Verb, string(record.Patch), err)
	// Output: update {"spec":{"image":"quay.io/example/catalog:v1.34"}} <nil>
}
