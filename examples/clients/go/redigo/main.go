// Calls Sluicegate over the Redis protocol, with Redigo (`go get github.com/gomodule/redigo`).
package main

import (
	"fmt"
	"log"
	"os"
	"time"

	"github.com/gomodule/redigo/redis"
)

// take takes a token from a bucket of three that refills at one per second. It waits after a denial.
func take(sluicegate redis.Conn, key string) (int, error) {
	for {
		got, err := redis.Ints(sluicegate.Do("CL.THROTTLE", key, 2, 1, 1))
		if err != nil {
			return 0, err
		}
		denied, left, retryAfter := got[0], got[2], got[3]
		if denied == 0 {
			return left, nil
		}
		if retryAfter < 0 {
			return 0, fmt.Errorf("this will never be allowed")
		}
		fmt.Printf("denied, waiting %d s\n", retryAfter)
		time.Sleep(time.Duration(retryAfter) * time.Second)
	}
}

func main() {
	address := os.Getenv("SLUICEGATE_RESP")
	if address == "" {
		address = "127.0.0.1:6380"
	}
	sluicegate, err := redis.Dial("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	defer sluicegate.Close()
	for i := 0; i < 4; i++ {
		left, err := take(sluicegate, "client:redigo")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("allowed, %d left\n", left)
	}
}
