// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/examples/internal/dryrun"
)

// TestATenantDoesNotChooseTheGlobalNamespace checks that each namespace of Subscriptions counts once, and which
// namespace is chosen if as many namespaces name several.
func TestATenantDoesNotChooseTheGlobalNamespace(t *testing.T) {
	for name, tt := range map[string]struct {
		subscriptions []string // namespace, namespace of the catalog, number
		want          string
	}{
		"no Subscription":                  {nil, ""},
		"catalogs of the own namespace":    {[]string{"a a 3", "b b 3"}, ""},
		"no namespace of the catalog":      {[]string{"a  3", "b  3", "c olm 1"}, "olm"},
		"one namespace of many":            {[]string{"a olm 2", "b olm 2", "evil evil-catalogs 1000"}, "olm evil-catalogs"},
		"one of many before by name":       {[]string{"a catalogs 1", "b catalogs 1", "evil attack 1000"}, "catalogs attack"},
		"a tie with the namespace of OLM":  {[]string{"a olm 1", "evil attack 1000"}, "olm attack"},
		"a tie with that of OpenShift":     {[]string{"a openshift-marketplace 1", "evil attack 1000"}, "openshift-marketplace attack"},
		"a tie of both":                    {[]string{"a openshift-marketplace 1", "b olm 1"}, "olm openshift-marketplace"},
		"a tie of others":                  {[]string{"a two 1", "b one 5"}, "one two"},
		"most, and not one of the default": {[]string{"a olm 1", "b two 1", "c two 1"}, "two olm"},
	} {
		t.Run(name, func(t *testing.T) {
			var subs []*v1alpha1.Subscription
			for _, line := range tt.subscriptions {
				of := strings.Split(line, " ")
				number := 0
				_, err := fmt.Sscan(of[2], &number)
				require.NoError(t, err)
				for i := range number {
					subs = append(subs, &v1alpha1.Subscription{
						ObjectMeta: metav1.ObjectMeta{Namespace: of[0], Name: fmt.Sprint("s", i)},
						Spec:       &v1alpha1.SubscriptionSpec{CatalogSourceNamespace: of[1]},
					})
				}
			}
			namespace, others := dryrun.MostNamed(append(subs, &v1alpha1.Subscription{}))
			require.Equal(t, tt.want, strings.Join(append([]string{namespace}, others...), " "))
		})
	}
}
