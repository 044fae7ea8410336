// SPDX-License-Identifier: Apache-2.0

package packages_test

import (
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/subscription/resolution/fbc"
	"github.com/olmcore/olm/subscription/resolution/packages"
)

// What a namespace sees of a catalog of the global namespace.
func ExampleVisible() {
	list, problems, err := fbc.Read("catalog.yaml", strings.NewReader(catalogText), fbc.Options{})
	if err != nil || len(problems) > 0 {
		panic(fmt.Sprint(err, problems))
	}
	catalog, problems := packages.Describe(&v1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
		Spec:       v1alpha1.CatalogSourceSpec{DisplayName: "Community operators"},
	}, list)
	for _, p := range problems {
		fmt.Println(p.Reason, p.Message)
	}
	for _, m := range packages.Visible([]packages.Catalog{catalog}, "shop", "olm") {
		fmt.Println(m.Namespace+"/"+m.Name, "of", m.Status.CatalogSourceDisplayName, "installs", m.Head().CurrentCSV)
	}
	// Output:
	// NotDescribed the catalog has no description of backup.v3.0.0
	// shop/backup of Community operators installs backup.v3.0.0
}

const catalogText = `
schema: olm.package
name: backup
defaultChannel: stable
---
schema: olm.channel
package: backup
name: stable
entries:
- {name: backup.v1.0.0}
- {name: backup.v2.0.0, replaces: backup.v1.0.0}
- {name: backup.v3.0.0, replaces: backup.v2.0.0}
---
schema: olm.bundle
package: backup
name: backup.v1.0.0
image: registry.example/backup@sha256:1
properties:
- {type: olm.package, value: {packageName: backup, version: 1.0.0}}
---
schema: olm.bundle
package: backup
name: backup.v2.0.0
image: registry.example/backup@sha256:2
properties:
- {type: olm.package, value: {packageName: backup, version: 2.0.0}}
---
schema: olm.bundle
package: backup
name: backup.v3.0.0
image: registry.example/backup@sha256:3
properties:
- {type: olm.package, value: {packageName: backup, version: 3.0.0}}
`
