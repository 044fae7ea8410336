// SPDX-License-Identifier: Apache-2.0

package fbc_test

import (
	"fmt"
	"testing/fstest"

	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

// A catalog is a directory; os.DirFS gives one of the disk.
func ExampleLoad() {
	catalog := fstest.MapFS{
		".indexignore": {Data: []byte("*.md\n")},
		"README.md":    {Data: []byte("# Our operators\n")},
		"backup/catalog.yaml": {Data: []byte(`
schema: olm.package
name: backup
defaultChannel: stable
---
schema: olm.channel
package: backup
name: stable
entries: [{name: backup.v1.0.0}, {name: backup.v1.1.0, replaces: backup.v1.0.0}]
---
schema: olm.bundle
package: backup
name: backup.v1.0.0
image: registry.example/backup:1.0.0
properties: [{type: olm.package, value: {packageName: backup, version: 1.0.0}}]
---
schema: olm.bundle
package: backup
image: registry.example/backup
`)},
	}
	packages, diagnostics, err := fbc.Load(catalog, ".", fbc.Options{})
	if err != nil {
		panic(err)
	}
	content, more := resolution.Build(packages)
	fmt.Println(content.Packages(), content.Channels("backup"), content.Chain("backup", "stable"))
	for _, d := range append(diagnostics, more...) {
		fmt.Println(d.Message)
	}
	// Output:
	// [backup] [stable] [backup.v1.1.0 backup.v1.0.0]
	// backup/catalog.yaml: document 4: name: is empty
	// entry backup.v1.1.0 has no bundle and cannot be chosen
}
