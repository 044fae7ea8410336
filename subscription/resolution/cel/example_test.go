// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"fmt"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/cel"
)

// A rule about the properties of a bundle. resolution.Input.CEL takes the compiler.
func ExampleNew() {
	compiler, err := cel.New()
	if err != nil {
		panic(err)
	}
	rule, err := compiler.Compile(`properties.exists(p, p.type == "olm.package" && semver_compare(p.value.version, "1.2.0") >= 0)`)
	if err != nil {
		panic(err)
	}
	for _, version := range []string{"1.1.0", "1.3.0"} {
		fmt.Println(version, rule.Satisfied([]olmcore.Property{
			{Type: "olm.package", Value: []byte(`{"packageName":"etcd","version":"` + version + `"}`)},
		}))
	}
	// Output:
	// 1.1.0 false
	// 1.3.0 true
}
