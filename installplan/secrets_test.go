// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// TestPullSecretOfAnotherNamespaceIsNotCopied, whatever its name.
func TestPullSecretOfAnotherNamespaceIsNotCopied(t *testing.T) {
	in := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "Secret", "pull", "")}, started(time.Second)))
	in.PullSecrets = olmcore.Found[*corev1.Secret](&corev1.Secret{ObjectMeta: meta("pull")})
	require.Equal(t, `retrying execution due to error: secret pull does not exist - secrets "pull" not found`, statusOf(in, reconcile(t, in)).Message)
}

// TestOnlyPullSecretsOfCatalogsAreCopied: a tenant's plan names no other Secret of OLM's namespace and gets it.
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
			source := inOLM("pull")
			source.Annotations = map[string]string{"no": "no"}
			in.PullSecrets = olmcore.Found[*corev1.Secret](&corev1.Secret{ObjectMeta: source, Type: c.kind, Data: map[string][]byte{"key": []byte("secret")}})
			in.CatalogSources = olmcore.Found(c.catalogs...)
			r := reconcile(t, in)
			if c.copied {
				require.Equal(t, []string{status, "create Secret ops/pull (StepAbsent)"}, describe(r))
				same(t, &corev1.Secret{
					TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
					ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pull", Labels: map[string]string{"olm.managed": "true"}},
					Type:       c.kind, Data: map[string][]byte{"key": []byte("secret")},
				}, r.Actions[1].(olmcore.Create).Object.(*corev1.Secret))
			} else {
				require.Equal(t, []string{status}, describe(r))
				require.Equal(t, "retrying execution due to error: secret pull is no pull secret that a catalog of namespace olm lists", statusOf(in, r).Message)
			}
			in.Config.CopyAnySecret = true
			require.Equal(t, []string{status, "create Secret ops/pull (StepAbsent)"}, describe(reconcile(t, in)))

			// What was copied before is enough.
			in = input(in.InstallPlan, with(&corev1.Secret{ObjectMeta: meta("pull")}))
			require.Equal(t, complete, statusOf(in, reconcile(t, in)).Phase)
		})
	}
}
